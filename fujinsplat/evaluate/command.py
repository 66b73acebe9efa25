"""`fujinsplat evaluate`."""

from fujinsplat.options import stage_app

app = stage_app("Score renders and write tables.")


@app.callback()
def _group() -> None:
    pass
