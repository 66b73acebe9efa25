"""Tables about the run itself: the optimisation settings in use, and what each stage was given to read."""

from pathlib import Path
from types import SimpleNamespace

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import PAPER_ITERATIONS
from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.reads import Reads, check_rows, read_reads
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
    used, paper = _stages(outline.settings, outline.paper), _stages(outline.paper, outline.paper)
    for stage, (optimiser, rate, steps, objective) in used.items():
        cells = [stage, optimiser, rate, steps, objective, paper[stage][1], paper[stage][2]]
        table.rows.append(Row([Cell(cell) for cell in cells]))
    return table


def _stages(settings: dict[str, dict], paper: dict[str, dict]) -> dict[str, tuple[str, str, str, str]]:
    s = {block: SimpleNamespace(**values) for block, values in settings.items()}
    isp, fit, control, splat, delta = (s[block] for block in ("isp", "actions", "controller", "splat", "delta"))
    rates = sorted({isp.lr_front, isp.lr_curves, isp.lr_lattice})
    base = f"{isp.weight_mse:g} MSE + {isp.weight_l1:g} L1 + {isp.weight_patch:g} patch means + shape terms"
    expert = f"L1 + {fit.weight_encoded:g} encoded L1 + {fit.weight_coupling:g} |coupling|²"
    controller = f"label + {control.weight_reconstruction:g} reconstruction"
    gaussians = f"{1 - splat.lambda_dssim:g} L1 + {splat.lambda_dssim:g} D-SSIM"
    factor = splat.iterations / PAPER_ITERATIONS
    window = f"{round(delta.after * factor)}–{round(delta.until * factor)}"
    return {
        "Base ISP": ("Adam", f"{rates[0]:g}–{rates[-1]:g}", f"{isp.warmup_steps + isp.joint_steps}", base),
        "Expert fitting": ("Adam", f"{fit.lr:g}", f"{fit.steps}", expert),
        "Controller": ("AdamW", f"{control.lr:g}", f"{control.steps}", controller),
        "3DGS": ("Adam", _splat_rates(settings["splat"], paper["splat"]), f"{splat.iterations}", gaussians),
        "Δ-ISP": ("Adam", f"{delta.lr_alpha:g}", window, "as 3DGS"),
    }


def _splat_rates(splat: dict, paper: dict) -> str:
    """3DGS's own rates by that name; others one by one."""
    names = [name for name in splat if name.startswith("lr_")]
    changed = {name.removeprefix("lr_"): splat[name] for name in names if splat[name] != paper[name]}
    if not changed:
        return "3DGS defaults"
    listed = ", ".join(f"{name.replace('_', ' ')} {rate:g}" for name, rate in changed.items())
    return listed if len(changed) == len(names) else f"{listed}; others 3DGS defaults"


_PARTS = {"source": "Hazy RAW/RGB", "clean": "Paired clean", "held": "Held views"}
# rules of each stage of the paper's table, by the beginning of the name; first match
_RULES = {
    "Base ISP calibration": ("isp",),
    "Correction distribution": ("actions_veil", "actions_population"),
    "Expert action fitting": ("actions",),
    "Read-only analyses": ("analysis",),
    "Controller training": ("synthesis_draw", "synthesis_observe", "controller"),
    "Rows": ("views", "develop", "splat", "render"),
    "Final evaluation": ("evaluate",),
}


def supervision(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Which stage, and which row, has hazy views, clean twins and held views behind it.

    It follows from what parts and artefacts declare they need, through everything these are made from, and is compared
    with what the jobs really opened, through everything that was made on the way; a difference is an error. The last
    column names the rules that opened pictures themselves, or says that a row's jobs were seen to open just these;
    where a job of a row left no record, that is said.
    """
    table = Table(
        "supervision", "What stands behind each stage and row", ["Stage or row", *_PARTS.values(), "Opened by"]
    )
    table.caption = (
        "`read`: the views' own pictures; `distribution`: only through what was learned from many scenes together (the "
        "population of measured pairs, and with `synthesis.tone: measured` the tones of the scenes' bases), the "
        "evaluated ones among them; `other scenes`: the same without the scene itself. "
        "Declared by parts, and the same as what every job's own record says it opened, where it says `seen`; "
        "decoding and figures are left out."
    )
    reads = read_reads(results)
    opened = _openers(outline, reads)
    rows = check_rows(outline, results, reads)
    for stage, found in outline.stages.items():
        table.rows.append(_line(stage, found, ", ".join(sorted(opened.get(stage, ()))), "stages"))
    for name, row in outline.rows.items():
        section = "o" if row.oracle else "rows"
        table.rows.append(_line(row.title, row.supervision, "seen" if name in rows else "no record", section))
    return table


def _line(title: str, found: dict[str, str], last: str, section: str) -> Row:
    cells = [Cell(title), *(Cell(found.get(part, "–")) for part in _PARTS), Cell(last or "–")]
    return Row(cells, section=section)


def _openers(outline: Outline, reads: list[Reads]) -> dict[str, set[str]]:
    """Rules that opened pictures, by stage of the table; one that opened more than its stage declares is an error."""
    found: dict[str, set[str]] = {}
    for job in reads:
        stage = next((stage for stage, names in _RULES.items() if job.rule.startswith(names)), None)
        if stage is None or not job.opened:
            continue
        found.setdefault(stage, set()).add(job.rule)
        beyond = job.opened - set(outline.stages.get(stage, job.opened))
        if beyond:
            raise UserError(
                f"{job.rule} opened {' and '.join(sorted(beyond))} views, which the stage {stage!r} does not declare; "
                "correct its needs in fujinsplat/rows/outline.py, or what it reads"
            )
    return found
