"""Source-view fidelity of the calibrated base [supp. B]: it must render as the camera does, smoke included."""

from fujinsplat.analysis.output import equal_scene_mean

COLUMNS = ("hazy_psnr", "hazy_ssim", "clean_psnr", "hazy_clean_psnr", "clean_raw_psnr")


def study(scenes: dict[str, tuple]) -> tuple[list[dict], dict]:
    """`scenes`: name to (source, clean, base). Rows per scene with the mean last, and the mean."""
    from fujinsplat.isp import clean_fidelity, source_fidelity

    rows = []
    for name, (source, clean, base) in scenes.items():
        scores = {**source_fidelity(base, source), **clean_fidelity(base, source, clean)}
        rows.append({"scene": name, **{column: scores[column] for column in COLUMNS}})
    mean = equal_scene_mean(rows)
    return [*rows, mean], {name: value for name, value in mean.items() if name != "scene"}


def sentence(result: dict, published: dict) -> str:
    return (
        f"The calibrated base matches the camera's smoky rendering at {result['hazy_psnr']:.2f} dB and its agreement"
        f" with the clean capture, {result['clean_psnr']:.2f} dB, is within"
        f" {abs(result['clean_psnr'] - result['hazy_clean_psnr']):.2f} dB of the smoky picture's own"
        f" {result['hazy_clean_psnr']:.2f} dB: it renders, and does not dehaze (published on RealX3D:"
        f" {published['hazy_psnr']:.2f}, {published['clean_psnr']:.2f}, {published['hazy_clean_psnr']:.2f} dB)."
    )


def draw(rows: list[dict], result: dict):
    """Per scene: base to smoky camera picture, base to clean, smoky to clean."""
    import numpy as np

    from fujinsplat.core.style import BLUE, GREEN, VERMILION, WIDE, figure

    fig, axes = figure(width=WIDE, height=2.5)
    scenes = rows[:-1]
    at = np.arange(len(scenes))
    for k, (name, color, label) in enumerate(
        (
            ("hazy_psnr", BLUE, "base to smoky camera RGB"),
            ("clean_psnr", VERMILION, "base to clean"),
            ("hazy_clean_psnr", GREEN, "smoky camera RGB to clean"),
        )
    ):
        axes.bar(at + 0.27 * (k - 1), [row[name] for row in scenes], 0.25, color=color, label=label)
        axes.axhline(result[name], color=color, ls="--", lw=0.8)
    axes.set_xticks(at, [row["scene"] for row in scenes])
    axes.set(ylabel="PSNR (dB), source views")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3)
    return fig
