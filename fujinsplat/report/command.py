"""`fujinsplat report`."""

from fujinsplat.options import stage_app

app = stage_app("Figures and report.html.")


@app.callback()
def _group() -> None:
    pass
