"""How every figure of the project looks and is written: one style file, a palette, PNG beside PDF.

fig, axes = figure(1, 2, width=WIDE, height=2.4)
…
save(fig, "results/demo/analysis/rank_one/figure.png")     # also writes figure.pdf
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fujinsplat.core.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("figures.mplstyle")
# inches: one column, both columns of a printed page
NARROW, WIDE = 3.4, 7.0
# the palette's names; red, green, blue curves use hues that stay apart for colour-blind readers
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
CHANNELS = {"R": VERMILION, "G": GREEN, "B": BLUE}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def use_style() -> None:
    """Switch matplotlib to the project's look, drawing to files only."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)


def figure(
    rows: int = 1, columns: int = 1, width: float = WIDE, height: float = 2.6, **options: Any
) -> "tuple[Figure, Any]":
    """`plt.subplots` in the project's style; sizes in inches. One pair of axes, or an array of them."""
    use_style()
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), **options)


def panel(axes, letter: str, title: str = "") -> None:
    """A panel's letter and title, above its left edge."""
    axes.set_title(f"({letter}) {title}".strip(), loc="left")


def save(fig, path: Path | str) -> list[Path]:
    """Write the figure as PNG and PDF beside each other (whole or not at all), close it, and say where they are.

    The files hold no date, so equal figures are equal files.
    """
    import matplotlib.pyplot as plt

    path = Path(path)
    metadata = {".png": {"Software": None}, ".pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
    paths = [path.with_suffix(suffix) for suffix in metadata]
    try:
        for target in paths:
            with atomic_file(target) as temporary:
                fig.savefig(temporary, metadata=metadata[target.suffix])
    finally:
        plt.close(fig)
    return paths
