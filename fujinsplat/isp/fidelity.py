"""How faithful a base is (the table of supplement B): PSNR and SSIM of 8-bit pictures, averaged over a scene's views.

`source_fidelity` looks at the hazy source views alone. `clean_fidelity` looks at the clean twins too; it belongs to the
read-only analyses, and nothing that makes a result may use it.
"""

from typing import Any

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.metrics import SSIM_WINDOW, psnr, ssim
from fujinsplat.core.progress import progress
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.picture import develop, materialize
from fujinsplat.isp.samples import Views, checked_pair


def _ssim(picture: np.ndarray, reference: np.ndarray) -> float | None:
    return ssim(picture, reference) if min(reference.shape[:2]) >= SSIM_WINDOW else None


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = [name for name in rows[0] if name != "stem"]
    means = {n: None if any(r[n] is None for r in rows) else float(np.mean([r[n] for r in rows])) for n in names}
    return {**means, "views": rows}


def source_fidelity(base: BaseISP, source: Views) -> dict[str, Any]:
    """`hazy_psnr`, `hazy_ssim`: the base's output against the camera's own hazy picture; and the same per view."""
    rows = []
    for stem in progress(source.stems, "scoring", unit="view"):
        raw, rgb = checked_pair(source, stem)
        picture = materialize(develop(base, raw))
        rows.append({"stem": stem, "hazy_psnr": psnr(picture, rgb), "hazy_ssim": _ssim(picture, rgb)})
    return _summary(rows)


def clean_fidelity(base: BaseISP, source: Views, clean: Views) -> dict[str, Any]:
    """The comparisons with the clean twins.

    `clean_psnr`: the base's hazy output against the clean camera picture; `hazy_clean_psnr`: the hazy camera picture
    against it; `clean_raw_psnr`: the clean RAW developed by the base (calibrated on haze alone) against it, which shows
    how well the base carries over to colours it has not seen.
    """
    rows = []
    for stem in progress(source.stems, "scoring against clean twins", unit="view"):
        if stem not in clean.stems:
            raise UserError(
                f"{getattr(clean, 'folder', 'the clean folder')} has no twin of view {stem}; capture it again"
            )
        raw, hazy = checked_pair(source, stem)
        clean_raw, reference = checked_pair(clean, stem)
        rows.append(
            {
                "stem": stem,
                "clean_psnr": psnr(materialize(develop(base, raw)), reference),
                "hazy_clean_psnr": psnr(hazy, reference),
                "clean_raw_psnr": psnr(materialize(develop(base, clean_raw)), reference),
            }
        )
    return _summary(rows)
