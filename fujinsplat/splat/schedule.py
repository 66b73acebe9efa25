"""When what happens, for any number of iterations.

The settings give the windows of the paper's 18,000 iterations; a run of another length scales them, so that each phase
keeps its share of the run. Intervals between densifications are kept, since they set how many views a decision is
based on.
"""

from dataclasses import dataclass

from fujinsplat.config import SplatSettings

PAPER_ITERATIONS = SplatSettings.model_fields["iterations"].default


@dataclass(frozen=True)
class Schedule:
    iterations: int
    sh_interval: int
    densify_from: int
    densify_until: int
    densify_every: int
    delta_from: int
    delta_until: int

    @staticmethod
    def of(settings: SplatSettings) -> "Schedule":
        share = settings.iterations / PAPER_ITERATIONS

        def scaled(iteration: int) -> int:
            return round(iteration * share)

        return Schedule(
            iterations=settings.iterations,
            sh_interval=max(1, scaled(settings.sh_interval)),
            densify_from=scaled(settings.densify_from),
            densify_until=scaled(settings.densify_until),
            densify_every=settings.densify_every,
            delta_from=scaled(settings.delta_from),
            delta_until=scaled(settings.delta_until),
        )

    def sh_degree(self, iteration: int, highest: int) -> int:
        """Active SH degree at `iteration` (from 1)."""
        return min(highest, iteration // self.sh_interval)

    def in_delta_window(self, iteration: int) -> bool:
        return self.delta_from < iteration <= self.delta_until
