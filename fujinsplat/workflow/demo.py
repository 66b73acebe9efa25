"""Which folders the demo rules make. Nobody else asks whether a dataset is the demo."""

from collections.abc import Callable

from fujinsplat.workflow.plan import Plan, pattern_of


class DemoPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def _made(self) -> dict:
        return {name: block for name, block in self.plan.config.datasets.items() if block.made_by_demo}

    @property
    def datasets(self) -> str:
        """A pattern of the datasets that the demo rules make, so that they never offer to make a user's folder."""
        return pattern_of(list(self._made()))

    @property
    def scenes(self) -> str:
        return pattern_of([scene for block in self._made().values() for scene in block.scenes])

    def makes(self, folder: str) -> bool:
        """Whether a rule makes this folder of scenes or captures."""
        return any(folder == block.external or folder.startswith(f"{block.root}/") for block in self._made().values())

    def captures(self, folder: str) -> int:
        """How many external captures the demo will put into this folder."""
        name = next(name for name, block in self._made().items() if block.external == folder)
        return self.plan.usual(name).demo.external

    def settings(self) -> Callable:
        return self.plan.settings("demo")
