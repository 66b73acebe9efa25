"""`fujinsplat synthesis`."""

from fujinsplat.options import stage_app

app = stage_app("Make labelled synthetic RAW observations.")


@app.callback()
def _group() -> None:
    pass
