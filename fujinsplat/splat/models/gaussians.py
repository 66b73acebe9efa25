"""Gaussians of linear colour, densified as in the original 3DGS [Sec. 4, supp. G]."""

from typing import TYPE_CHECKING, Any

from fujinsplat.core.parts import Model, NoSettings, points_of

if TYPE_CHECKING:
    from torch import Tensor

    from fujinsplat.core.settings import SplatSettings
    from fujinsplat.splat.data import TrainingScene, View
    from fujinsplat.splat.schedule import Schedule


class GaussianField:
    """Gaussians in training: their optimizers, their densification, and how a picture of them comes about.

    Another model of the kind changes `render` (what is compared with a view), `compare` (how), `penalty` (terms of its
    own) and, where it has parameters beside the Gaussians, `update`, `state` and `restore`.
    """

    targets: Any = None  # what it is compared with, set by the trainer (`fujinsplat.splat.targets`)
    joins = True  # on a GPU, all harmonics in one parameter (`fujinsplat.splat.joined`)
    rates = "settings.splat.lr_means"  # what to lower when it diverges
    own_loss = False  # whether `compare` is its own, whatever light the views are given in

    def __init__(self, scene: "TrainingScene", settings: "SplatSettings", own: Any):
        from fujinsplat.splat.densify import strategy
        from fujinsplat.splat.model import Gaussians

        self.settings, self.own, self.schedule = settings, own, self.timetable(settings, own)
        start = Gaussians.from_points(scene.xyz, scene.rgb_encoded, settings.sh_degree, scene.device, self.display())
        self.gaussians = self._kind(start)(start.parameters, start.display)
        self.optimizers = self._optimizers()
        self.strategy = strategy(settings, self.schedule)
        self.densification = self.strategy.initialize_state(scene_scale=scene.extent)

    @staticmethod
    def display() -> Any:
        """How its pictures are shown; None: as linear light."""
        return None

    def start_in(self, display: Any) -> None:
        """The views are given in linear light, shown by `display`: colours that start encoded are decoded."""
        import torch

        from fujinsplat.core.color import decode
        from fujinsplat.splat.raster.harmonics import C0

        if self.gaussians.display.colour == "encoded":
            with torch.no_grad():
                sh0 = self.gaussians.parameters["sh0"]
                sh0.copy_((decode((sh0 * C0 + 0.5).clamp(0, 1)) - 0.5) / C0)
        self.gaussians.display = display

    @staticmethod
    def timetable(settings: "SplatSettings", own: Any) -> "Schedule":
        """When what happens in this run."""
        from fujinsplat.splat.schedule import Schedule

        return Schedule.of(settings)

    def _kind(self, gaussians: Any) -> type:
        """How they are held while they are trained."""
        from fujinsplat.core import gpu
        from fujinsplat.splat.joined import JoinedGaussians
        from fujinsplat.splat.model import Gaussians

        return JoinedGaussians if self.joins and gpu.holds(gaussians.parameters["means"]) else Gaussians

    def _optimizers(self) -> dict:
        from fujinsplat.splat.model import NAMES

        s = self.settings
        values = (s.lr_means, s.lr_quats, s.lr_scales, s.lr_opacities, s.lr_sh0, s.lr_shn)
        rates: dict[str, float] = dict(zip(NAMES, values, strict=True))
        return {name: self._adam(name, value, rates) for name, value in self.gaussians.parameters.items()}

    def _adam(self, name: str, parameter: "Tensor", rates: dict[str, float]) -> Any:
        """Adam of one parameter; with `selective_adam` gsplat's, which moves what a view sees and nothing else."""
        from fujinsplat.compat.optim import Adam
        from fujinsplat.core import gpu
        from fujinsplat.core.errors import UserError

        if self.settings.selective_adam:
            if not gpu.holds(parameter):
                raise UserError("settings.splat.selective_adam runs on a GPU alone; set it to false, or device: cuda")
            from fujinsplat.compat.gsplat_cuda import load_kernels

            load_kernels()
        if name == "sh":
            from fujinsplat.splat.joined import JointAdam, JointSightAdam

            kind = JointSightAdam if self.settings.selective_adam else JointAdam
            return kind(parameter, rates["sh0"], rates["shN"], eps=1e-15)
        if self.settings.selective_adam:
            from fujinsplat.compat.gsplat_strategy import SightAdam

            return SightAdam(parameter, rates[name], eps=1e-15)
        return Adam([parameter], lr=rates[name], eps=1e-15, fused=True)

    def render(self, view: "View", iteration: int, with_depth: bool = False) -> tuple["Tensor", "Tensor", dict]:
        """(picture `[H, W, 3]` as it is compared, alpha `[H, W]`, info) of one view."""
        degree = self.schedule.sh_degree(iteration, self.settings.sh_degree)
        return self.gaussians.render(view.viewmat, view.K, view.width, view.height, degree, with_depth)

    def look(self, view: "View") -> tuple["Tensor", "Tensor", "Tensor"]:
        """(picture, alpha, accumulated depth) of one view as it now is, without gradients."""
        import torch

        with torch.no_grad():
            picture, alpha, info = self.gaussians.render(view.viewmat, view.K, view.width, view.height)
            return picture, alpha, info["depth"]

    def shown(self, picture: "Tensor") -> "Tensor":
        """A rendered picture as the display shows it, encoded."""
        return self.gaussians.display(picture)

    def fitted(self, target: "Tensor", picture: "Tensor") -> "Tensor":
        """The target as it is compared with a picture; here the two have one size."""
        return target

    def compare(self, rendered: "Tensor", target: "Tensor") -> "Tensor":
        """The loss of a view, both pictures encoded `[H, W, 3]`."""
        from fujinsplat.splat.loss import photometric_loss

        return photometric_loss(rendered, target, self.settings.lambda_dssim)

    def penalty(self, view: "View", picture: "Tensor", alpha: "Tensor", info: dict, iteration: int) -> "Tensor | None":
        """A term of the model's own, added to the loss of the view; None: there is none."""
        return None

    def before(self, iteration: int) -> None:
        """3DGS: the positions' rate decays exponentially, in units of the scene's extent."""
        rate = self.schedule.position_rate(iteration, self.settings)
        self.optimizers["means"].param_groups[0]["lr"] = rate * self.densification["scene_scale"]

    def update(self, loss: "Tensor", iteration: int, info: dict) -> None:
        """Backward pass, one step of every optimizer, and densification where it is time."""
        import torch

        densifying = iteration <= self.schedule.densify_until
        parameters = self.gaussians.parameters
        if densifying:
            self.strategy.step_pre_backward(parameters, self.optimizers, self.densification, iteration, info)
        loss.backward()
        seen = ((info["radii"] > 0).all(-1)[0],) if self.settings.selective_adam else ()
        for optimizer in self.optimizers.values():
            optimizer.step(*seen)
            optimizer.zero_grad(set_to_none=True)
        if densifying:
            torch.manual_seed(self.settings.seed + iteration)  # splitting draws: a function of the iteration alone
            self.strategy.step_post_backward(parameters, self.optimizers, self.densification, iteration, info)

    def finite(self) -> bool:
        import torch

        return all(bool(torch.isfinite(value.sum())) for value in self.gaussians.parameters.values())

    def log(self) -> dict:
        """What a line of the training log says of parameters beside the Gaussians."""
        return {}

    def finished(self) -> Any:
        """The Gaussians as they are stored, with what else the model has learned."""
        return self.gaussians.plain()

    def state(self) -> dict:
        return {
            "parameters": {name: value.detach() for name, value in self.gaussians.parameters.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "densification": dict(self.densification),
        }

    def restore(self, state: dict) -> None:
        self.gaussians = type(self.gaussians)(state["parameters"], self.gaussians.display)
        self.optimizers = self._optimizers()
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.densification = state["densification"]


def make(scene: "TrainingScene", settings: "SplatSettings", own: NoSettings) -> GaussianField:
    return GaussianField(scene, settings, own)


def needs(settings: Any) -> tuple[str, ...]:
    return ("cameras", points_of(settings))


PART = Model(name="gaussians", run=make, needs=needs, stages=("splat",))
