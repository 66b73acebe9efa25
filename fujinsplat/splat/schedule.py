"""When what happens, for any number of iterations.

The settings give the windows of the paper's 18,000 iterations; a run of another length scales them, so that each phase
keeps its share of the run. Intervals between densifications are kept, since they set how many views a decision is
based on.
"""

from dataclasses import dataclass

from fujinsplat.core.settings import PAPER_ITERATIONS, SplatSettings


@dataclass(frozen=True)
class Schedule:
    iterations: int
    sh_interval: int
    densify_from: int
    densify_until: int
    densify_every: int
    lr_horizon: int

    @staticmethod
    def of(settings: SplatSettings, published: int = PAPER_ITERATIONS) -> "Schedule":
        """`published`: the length of the run that the windows in `settings` are for."""
        share = settings.iterations / published

        def scaled(iteration: int) -> int:
            return round(iteration * share)

        return Schedule(
            iterations=settings.iterations,
            sh_interval=max(1, scaled(settings.sh_interval)),
            densify_from=scaled(settings.densify_from),
            densify_until=scaled(settings.densify_until),
            densify_every=settings.densify_every,
            lr_horizon=max(2, scaled(settings.lr_horizon)),
        )

    def position_rate(self, iteration: int, settings: SplatSettings) -> float:
        """The positions' learning rate at `iteration` (from 1), in units of the scene's extent: an exponential decay
        from `lr_means` to `lr_means_final`, which it reaches at the horizon and keeps."""
        done = min((iteration - 1) / (self.lr_horizon - 1), 1.0)
        return settings.lr_means ** (1 - done) * settings.lr_means_final**done

    def sh_degree(self, iteration: int, highest: int) -> int:
        """Active SH degree at `iteration` (from 1)."""
        return min(highest, iteration // self.sh_interval)
