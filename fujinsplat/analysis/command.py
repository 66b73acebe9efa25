"""`fujinsplat analysis`."""

from fujinsplat.options import stage_app

app = stage_app("The paper's read-only studies.")


@app.callback()
def _group() -> None:
    pass
