"""`fujinsplat splat`."""

from fujinsplat.options import stage_app

app = stage_app("Train, render and export Gaussians.")


@app.callback()
def _group() -> None:
    pass
