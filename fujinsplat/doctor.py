"""`fujinsplat doctor`."""

from fujinsplat.options import stage_app

app = stage_app("What this machine has, and what to do about what is missing.")


@app.callback()
def _group() -> None:
    pass
