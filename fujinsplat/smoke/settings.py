"""Settings of the smoke estimate; docs/smoke-choices.md says which worlds chose them."""

from typing import Annotated, Literal

from pydantic import Field

from fujinsplat.core.settings import Count, Fraction, Positive, Settings, Weight, setting


class SmokeSettings(Settings):
    """Smoke from a scene's own RAW views: H = J T + s_v A (1 - T), T = exp(-(a_v(x) + b_v(x) Z))."""

    width: Annotated[int, Field(ge=32)] = setting(320, "pictures are averaged down to at most this width to estimate")
    grid: tuple[Count, Count] = setting((8, 6), "nodes of a view's optical depth, across and down")
    slopes: tuple[Count, Count] = setting((4, 3), "nodes of how fast it grows with distance, across and down")
    airlight: Literal["pairs", "brightest"] = setting(
        "pairs", "its colour from what smoke changes between views, or the brightest pixels' (the usual guess)"
    )
    depth: Literal["points", "splats", "none"] = setting(
        "points",
        "distances of the points, of the splats where these are in doubt; splats: theirs alone, from hazy views on; "
        "none: optical depth does not grow with distance",
    )
    quantile: Fraction = setting(0.035, "share of surface points taken to be black: the level")
    cut: Positive = setting(0.3, "optical depth; a point this far beyond black is a wrong depth")
    consensus: Positive = setting(10.0, "weight of what views say about each other against the dark pixels")
    trials: Positive = setting(1000.0, "independent pixels a view's consensus counts as, against the priors below")
    rough: Positive = setting(0.15, "deviation of a view's optical depth between neighbouring nodes")
    uneven: Positive = setting(0.3, "deviation of a view's slope between neighbouring nodes")
    level: Weight = setting(0.03, "deviation of the airlight's level between views; 0 holds it to one")
    tilt: Weight = setting(0.02, "deviation of its level from the middle to the edge of a view; 0 holds it even")
    tracks: Count = setting(1500, "surface points followed through the views")
    partners: Count = setting(24, "other views a view is compared with, at most")
    updates: tuple[Fraction, ...] = setting(
        (0.0, 0.1, 0.25, 0.45, 0.7), "shares of a training at which the smoke is estimated"
    )
    loss: Literal["linear", "display"] = setting(
        "linear", "what training compares: unclipped linear light over the display's slope, or clipped encoded pictures"
    )
    floor: Positive = setting(0.03, "transmission below which nothing is cleared further")
    doubt: Fraction = setting(0.3, "weight of pixels whose depth is not trusted")
    edges: Weight = setting(0.2, "weight of differences between neighbouring pixels in the training's linear loss")

    @property
    def grids(self) -> tuple[int, int, int, int]:
        """Nodes of layer and slope, as the kernels take them."""
        return (*self.grid, *self.slopes)
