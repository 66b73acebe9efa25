"""`fujinsplat develop`."""

from fujinsplat.options import stage_app

app = stage_app("Apply a controller to a scene.")


@app.callback()
def _group() -> None:
    pass
