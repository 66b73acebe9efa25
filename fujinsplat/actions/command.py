"""`fujinsplat actions`."""

from fujinsplat.options import stage_app

app = stage_app("Fit expert actions and the correction distribution.")


@app.callback()
def _group() -> None:
    pass
