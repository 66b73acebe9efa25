"""`fujinsplat demo`."""

from fujinsplat.options import stage_app

app = stage_app("Make the embedded demo world from a seed.")


@app.callback()
def _group() -> None:
    pass
