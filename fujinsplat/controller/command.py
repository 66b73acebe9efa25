"""`fujinsplat controller`."""

from fujinsplat.options import stage_app

app = stage_app("Train or import the scene-agnostic controller.")


@app.callback()
def _group() -> None:
    pass
