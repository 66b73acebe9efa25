"""A table as data: cells with values, ranks and deviations; how it looks is decided in `formats`."""

from dataclasses import dataclass, field

from fujinsplat.evaluate.collect import Value


@dataclass
class Cell:
    """`value` None is a gap. `digits` is the precision shown; `rank` 1-3 marks first, second and third place."""

    value: float | str | bool | None
    digits: int = 2
    deviation: float | None = None
    rank: int | None = None

    def text(self) -> str:
        if self.value is None:
            return "–"
        if isinstance(self.value, bool):
            return "✓" if self.value else "×"
        if isinstance(self.value, float):
            spread = "" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}"
            return f"{self.value:.{self.digits}f}{spread}"
        return str(self.value)


@dataclass
class Row:
    """`note` says what kind of row it is: "" (ours), "quoted" (from the paper) or "oracle" (uses clean twins)."""

    cells: list[Cell]
    note: str = ""
    section: str = ""


@dataclass
class Table:
    """`published` holds the indices of the columns that carry the paper's numbers instead of ours; `timed` of those
    with times and memory, which no two runs share."""

    name: str
    title: str
    headers: list[str]
    rows: list[Row] = field(default_factory=list)
    caption: str = ""
    published: frozenset[int] = frozenset()
    timed: frozenset[int] = frozenset()


DIGITS = {"psnr": 2, "train_psnr": 2, "ssim": 3, "lpips": 3}
LOWER_IS_BETTER = {"lpips"}


def scenes(count: int) -> str:
    return "1 scene" if count == 1 else f"{count} scenes"


def measured(value: Value | None, metric: str) -> Cell:
    digits = DIGITS.get(metric, 2)
    return Cell(None, digits) if value is None else Cell(value.mean, digits, value.deviation)


def rank(cells: list[Cell], metric: str) -> None:
    """Mark the best three by unrounded value; equal values share a place, and a field of one is no contest."""
    present = [(cell, cell.value) for cell in cells if isinstance(cell.value, float)]
    if len(present) < 2:
        return
    sign = 1 if metric in LOWER_IS_BETTER else -1
    for cell, value in present:
        place = 1 + sum(sign * other < sign * value for _, other in present)
        cell.rank = place if place <= 3 else None
