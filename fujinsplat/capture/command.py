"""`fujinsplat capture`."""

from fujinsplat.options import stage_app

app = stage_app("Decode a scene once: linear RAW views, camera RGB, cameras, points.")


@app.callback()
def _group() -> None:
    pass
