"""A few lines for the terminal after a build: the main numbers and where to look."""

from pathlib import Path

from fujinsplat.evaluate.collect import read_metrics
from fujinsplat.evaluate.outline import Outline


def highlights(results: Path, outline: Outline) -> str:
    """Mean scores of each variant that has any, scene names, and the files to open."""
    variants = list(outline.rows)
    scenes = [scene for scene in outline.scenes if (results / "gaussians" / scene).is_dir()]
    metrics = read_metrics(results, outline)
    lines = [f"{outline.dataset}: {', '.join(scenes) or 'no scene built yet'}"]
    width = max((len(outline.title(name)) for name in variants), default=0)
    for name in variants:
        values = {metric: metrics.average(scenes, name, metric) for metric in ("psnr", "ssim", "lpips")}
        psnr = values.pop("psnr")
        if psnr is None:
            continue
        spread = f" ± {psnr.deviation:.2f}" if psnr.deviation is not None else ""
        shown = [f"PSNR {psnr.mean:5.2f}{spread} dB"]
        shown += [f"{metric.upper()} {value.mean:.3f}" for metric, value in values.items() if value is not None]
        lines.append(f"  {outline.title(name):<{width}}  {'  '.join(shown)}")
    for path, what in (("report.html", "pictures, 3D views, tables and times"), ("tables", "CSV, Markdown, LaTeX")):
        if (results / path).exists():
            lines.append(f"  {results / path}  ({what})")
    return "\n".join(lines)
