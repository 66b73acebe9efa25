"""`fujinsplat isp`."""

from fujinsplat.options import stage_app

app = stage_app("Calibrate, import and score the per-scene Base ISP.")


@app.callback()
def _group() -> None:
    pass
