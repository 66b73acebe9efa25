"""`fujinsplat flow`."""

from fujinsplat.options import stage_app

app = stage_app("Look at one colour action, or apply it to a picture.")


@app.callback()
def _group() -> None:
    pass
