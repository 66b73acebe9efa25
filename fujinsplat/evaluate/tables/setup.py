"""Tables about the run itself: the optimisation settings in use, and what each stage was given to read."""

import re
from pathlib import Path

from fujinsplat.config import SplatSettings, StageSettings
from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.provenance import read_records
from fujinsplat.evaluate.tables.model import Cell, Row, Table


def settings(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Optimiser, learning rate, steps and objective of each stage, as used; the paper's rate and steps beside them."""
    table = Table(
        "settings",
        f"Optimisation settings by stage on {outline.dataset}",
        ["Stage", "Optimiser", "Learning rate", "Steps", "Objective", "Rate (paper)", "Steps (paper)"],
        published=frozenset([5, 6]),
    )
    table.caption = "The Gaussians and the Δ-ISP scalars share one run; the scalars' steps are iterations of that run."
    used, paper = _stages(outline.settings), _stages(StageSettings())
    for stage, (optimiser, rate, steps, objective) in used.items():
        cells = [stage, optimiser, rate, steps, objective, paper[stage][1], paper[stage][2]]
        table.rows.append(Row([Cell(cell) for cell in cells]))
    return table


def _stages(s: StageSettings) -> dict[str, tuple[str, str, str, str]]:
    isp, fit, control, splat = s.isp, s.actions, s.controller, s.splat
    rates = sorted({isp.lr_front, isp.lr_curves, isp.lr_lattice})
    base = f"{isp.weight_mse:g} MSE + {isp.weight_l1:g} L1 + {isp.weight_patch:g} patch means + shape terms"
    expert = f"L1 + {fit.weight_encoded:g} encoded L1 + {fit.weight_coupling:g} |coupling|²"
    controller = f"label + {control.weight_reconstruction:g} reconstruction"
    gaussians = f"{1 - splat.lambda_dssim:g} L1 + {splat.lambda_dssim:g} D-SSIM"
    factor = splat.iterations / StageSettings().splat.iterations
    window = f"{round(splat.delta_from * factor)}–{round(splat.delta_until * factor)}"
    return {
        "Base ISP": ("Adam", f"{rates[0]:g}–{rates[-1]:g}", f"{isp.warmup_steps + isp.joint_steps}", base),
        "Expert fitting": ("Adam", f"{fit.lr:g}", f"{fit.steps}", expert),
        "Controller": ("AdamW", f"{control.lr:g}", f"{control.steps}", controller),
        "3DGS": ("Adam", _splat_rates(splat), f"{splat.iterations}", gaussians),
        "Δ-ISP": ("Adam", f"{splat.lr_alpha:g}", window, "as 3DGS"),
    }


def _splat_rates(splat: SplatSettings) -> str:
    """3DGS's own rates by that name; others one by one."""
    names = [name for name in SplatSettings.model_fields if name.startswith("lr_") and name != "lr_alpha"]
    changed = {
        name.removeprefix("lr_"): getattr(splat, name)
        for name in names
        if getattr(splat, name) != SplatSettings.model_fields[name].default
    }
    if not changed:
        return "3DGS defaults"
    listed = ", ".join(f"{name.replace('_', ' ')} {rate:g}" for name, rate in changed.items())
    return listed if len(changed) == len(names) else f"{listed}; others 3DGS defaults"


# rows of the paper's supervision table and the rules behind each, by the beginning of the rule's name; first match
_ROWS = {
    "Base ISP calibration": ("isp",),
    "Correction distribution": ("actions_veil", "actions_population"),
    "Expert action fitting": ("actions",),
    "Read-only analyses": ("analysis",),
    "Controller training": ("synthesis", "controller"),
    "3DGS + Δ-ISP": ("develop", "splat", "render"),
    "Final evaluation": ("evaluate",),
}
_ORDER = [
    "Base ISP calibration",
    "Expert action fitting",
    "Correction distribution",
    "Read-only analyses",
    "Controller training",
    "3DGS + Δ-ISP",
    "Oracle references",
    "Final evaluation",
]
# what only shows pictures has no row: it may run before or after this table is made
_SHOWN_ONLY = ("report", "synthesis_gallery", "synthesis_report")
_PARTS = {"source": "Hazy RAW/RGB", "clean": "Paired clean", "held": "Held views"}


def supervision(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Which stage was given hazy views, clean twins and held views: the inputs of the jobs that ran.

    A stage cannot open what its rule does not name, so declared inputs are the boundary itself.
    """
    table = Table("supervision", "What each stage reads", ["Stage", *_PARTS.values(), "Rules that read"])
    table.caption = "From the inputs that the rules declared in this run; decoding and figures are left out."
    oracle_names = {name for name, variant in outline.variants.items() if variant.oracle != "none"}
    seen: dict[str, tuple[set[str], set[str]]] = {}
    for record in read_records(results):
        row = _row(record.rule)
        if oracle_names & set(re.split(r"[/.@]", record.output)) and row == "3DGS + Δ-ISP":
            row = "Oracle references"
        if row is None:
            continue
        read = set()
        for path in record.inputs:
            found = re.search(r"capture/[^/]+/(source|clean|held)(/|$)", path)
            read |= {found.group(1)} if found else set()
            read |= {"distribution"} if path.endswith("population.json") else set()
        parts, rules = seen.setdefault(row, (set(), set()))
        parts |= read
        rules |= {record.rule} if read else set()
    for row in sorted(seen, key=_ORDER.index):
        parts, rules = seen[row]
        cells = [Cell(row)]
        for part in _PARTS:
            text = "read" if part in parts else "–"
            if part == "clean" and text == "–" and "distribution" in parts:
                text = "distribution"
            cells.append(Cell(text))
        table.rows.append(Row([*cells, Cell(", ".join(sorted(rules)))]))
    if not seen:
        table.caption = "Snakemake's records are not beside these results, so there is nothing to read this from."
    return table


def _row(rule: str) -> str | None:
    if rule.startswith(_SHOWN_ONLY):
        return None
    return next((row for row, beginnings in _ROWS.items() if rule.startswith(beginnings)), None)
