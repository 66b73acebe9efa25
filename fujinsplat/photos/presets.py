"""How much work a scene of one's own is worth: settings for a first look, for an evening, and for the best there is."""

from typing import Any

# shorter trainings take larger steps, as the demo's do
QUICK: dict[str, dict[str, Any]] = {
    "capture": {"max_side": 480},
    "motion": {"side": 800, "features": 2048},
    "isp": {"warmup_steps": 50, "joint_steps": 150},
    "splat": {
        "iterations": 1200,
        "max_gaussians": 15000,
        "densify_every": 50,
        "bake_steps": 80,
        "lr_means": 0.0016,
        "lr_means_final": 0.000016,
        "lr_scales": 0.02,
        "lr_quats": 0.005,
        "lr_sh0": 0.02,
        "lr_shn": 0.001,
    },
}
USUAL: dict[str, dict[str, Any]] = {
    "capture": {"max_side": 960},
    "motion": {"side": 1200},
    "splat": {
        "iterations": 5000,
        "max_gaussians": 100_000,
        "bake_steps": 200,
        "lr_means": 0.0006,
        "lr_means_final": 0.000006,
        "lr_scales": 0.01,
        "lr_quats": 0.0025,
        "lr_sh0": 0.007,
        "lr_shn": 0.00035,
    },
}
FULL: dict[str, dict[str, Any]] = {}  # every picture as it is, the paper's schedule; on a CPU `cpu_gaussians`
PRESETS = {"quick": QUICK, "usual": USUAL, "full": FULL}


# Without a GPU an iteration's time grows with the Gaussians. More than one for so many pixels, all views counted, fits
# noise; the presets above and the demo have one for 90 to 250.
PIXELS_PER_GAUSSIAN = 16
CPU_GAUSSIANS = (10_000, 300_000)


def cpu_gaussians(sizes: list[tuple[float, float]], width: int) -> int:
    """The most Gaussians that a full training on a CPU makes of views of these sizes, `width` pixels wide at most."""
    pixels = sum(w * h * min(1.0, width / w) ** 2 for w, h in sizes)
    least, most = CPU_GAUSSIANS
    return int(min(max(pixels / PIXELS_PER_GAUSSIAN, least), most))


def settings_of(preset: str, size: int | None) -> dict[str, dict[str, Any]]:
    """A preset's settings by block; `size` is the working size in pixels of the longer side, where it is chosen."""
    chosen = {block: dict(values) for block, values in PRESETS[preset].items()}
    if size is not None:
        chosen.setdefault("capture", {})["max_side"] = size
    return chosen
