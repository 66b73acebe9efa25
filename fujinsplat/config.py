"""Every setting, once: its meaning, its value in the paper, and the section it comes from.

Where our default is another than the paper's, the setting's meaning says `published` and what the paper has.

`config.yaml` holds only what differs from here. A dataset block may carry its own `settings` overlay (the demo has its
smaller numbers there). The JSON schema of `config.yaml` is generated from these models; see `fujinsplat config schema`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, Field(ge=0)]


def setting(default: Any, meaning: str, **limits: Any) -> Any:
    """A documented field: `meaning` names the paper's section in brackets where the value comes from it."""
    return Field(default, description=meaning, **limits)


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DemoSettings(Settings):
    """The embedded demo world, made from a seed."""

    seed: Steps = setting(20260, "another seed gives another world")
    width: Annotated[int, Field(ge=32, multiple_of=2)] = setting(240, "picture width in pixels; RAW has twice")
    height: Annotated[int, Field(ge=32, multiple_of=2)] = setting(160, "picture height in pixels; RAW has twice")
    source_views: Annotated[int, Field(ge=2)] = setting(24, "smoky views per scene, each with a clean twin")
    held_views: Count = setting(4, "clean held views per scene [supp. H]")
    external: Count = setting(96, "smoke-free external captures for the synthesis stage")
    points: Count = setting(6000, "points of the structure-from-motion cloud, before outliers")


class CaptureSettings(Settings):
    """RAW decoding and geometry."""

    demosaic: Literal["AHD", "DHT", "VNG", "PPG", "LINEAR"] = setting("AHD", "LibRaw demosaicing [Sec. 4]")
    white_balance: tuple[Positive, Positive, Positive] = setting(
        (2428 / 1024, 1.0, 1700 / 1024), "of decoded arrays that carry none (G = 1): RealX3D's camera"
    )


class IspSettings(Settings):
    """Per-scene Base ISP: initial state and calibration."""

    checkpoint: str | None = setting(
        None, "an imported base ({scene} is replaced) used instead of calibrating; see `fujinsplat isp import`"
    )
    warmup_steps: Steps = setting(100, "back-only updates: shaper, lattices, tone [supp. B]")
    joint_steps: Steps = setting(400, "updates of all parameters [supp. B]")
    pixels: Count = setting(8192, "pixels of one source view per update [supp. B]")
    patches: Steps = setting(16, "fixed patches whose RGB means are compared [supp. B]")
    patch_size: Count = setting(32, "side of a patch in pixels [supp. B]")
    lr_front: Positive = setting(1e-4, "learning rate of exposure, white balance, matrix [supp. B]")
    lr_curves: Positive = setting(2e-4, "learning rate of Shaper257 and Tone257 [supp. B]")
    lr_lattice: Positive = setting(3e-4, "learning rate of G9 and R33 [supp. B]")
    lr_final: Fraction = setting(0.05, "cosine multiplier at the last update; 1.0 at the first [supp. B]")
    weight_mse: Weight = setting(1.0, "mean squared error [supp. B]")
    weight_l1: Weight = setting(0.05, "mean absolute error [supp. B]")
    weight_patch: Weight = setting(0.25, "patch means [supp. B]")
    weight_range: Weight = setting(0.05, "front out-of-range squared hinge [supp. B]")
    weight_jacobian: Weight = setting(0.01, "front Jacobian safety [supp. B]")
    weight_lattice: Weight = setting(1e-6, "first-order sampled lattice energy [supp. B]")
    weight_smooth: Weight = setting(1e-7, "second-order lattice, curve curvature, front L2 [supp. B]")
    clip: Positive = setting(5.0, "gradient-norm clip [supp. B]")
    jacobian_pixels: Count = setting(64, "pixels of an update at which the Jacobian is taken")
    jacobian_step: Positive = setting(1e-3, "finite-difference step of the Jacobian, camera-linear RAW")
    initial: Literal["fitted", "metadata"] = setting(
        "fitted", "initial state: metadata and tone regression; `fitted` adds a least-squares matrix and G9"
    )
    initial_pixels: Count = setting(100_000, "pixels of all source views that the initial state is fitted to")
    initial_matrix: Positive = setting(1e-5, "pull of the initial matrix to the metadata's, per pixel")
    initial_smooth: Positive = setting(1e-2, "weight of the first differences of the initial G9, per pixel")
    seed: Steps = setting(82751, "[supp. B]")


class ActionsSettings(Settings):
    """Expert actions and the correction distribution."""

    lr: Positive = setting(2e-2, "Adam learning rate [supp. G]")
    steps: Steps = setting(500, "updates from a zero start [supp. G]")
    pixels: Count = setting(4096, "fixed random pixels per view")
    weight_encoded: Weight = setting(0.25, "encoded L1 beside linear-light L1")
    weight_range: Weight = setting(0.01, "out-of-range penalty")
    weight_coupling: Weight = setting(0.002, "squared coupling coefficients [supp. G]")
    percentiles: Annotated[int, Field(ge=3)] = setting(15, "matched percentiles of the (pivot, contrast) fit [supp. F]")
    population: str | None = setting(None, "a population.json to use instead of fitting one (no clean twins needed)")
    seed: Steps = setting(195, "choice of the pixels")


class SynthesisSettings(Settings):
    """Reverse ISP-action synthesis."""

    labels: Literal["published", "fitted"] = setting("published", "label compiler [supp. F]")
    coordinate: Literal["base", "raw"] = setting(
        "base", "where gain and pivot level are measured; `raw` is the published setting [supp. F]"
    )
    draws: Literal["veil", "actions"] = setting(
        "veil", "labels from measured (pivot, contrast), or from the fitted expert actions [Sec. 3.3, supp. F]"
    )
    veil: Literal["measured", "published"] = setting(
        "measured",
        "what a draw takes from its pair: brightness, pivot and contrast together, or (published) the direction of its "
        "pivot alone, with one level for all and the contrast from depth [supp. F]",
    )
    smoke: Literal["room", "uniform"] = setting(
        "room",
        "how smoke lies over a capture: over its RAW, by depth and uneven, with the label that its pair measures, or "
        "(published) the same veil everywhere",
    )
    by_depth: Fraction = setting(0.6, "room smoke: largest share of its optical depth that grows with distance")
    relight: Weight = setting(
        0.7, "widest stretch of a capture's own range of light (log of the exponent); 0 (published): as it is"
    )
    tone: Literal["measured", "exposure"] = setting(
        "measured", "the external base's tone: the scenes' calibrated bases', or (published) one exposure [supp. F]"
    )
    uneven: Weight = setting(0.25, "room smoke: relative spread across the picture")
    jitter: Weight = setting(0.08, "relative spread around a measured brightness, level and optical depth")
    light: Fraction = setting(0.25, "share of draws with light smoke (t near 1); 0 is the published setting")
    draws_per_capture: Count = setting(1, "observations made of each capture, each with its own draw [supp. F]")
    pixels: Count = setting(4096, "matched pixels stored per observation")
    summary: Count = setting(64, "side of the RAW summary [supp. G]")
    knee: Positive = setting(0.02, "hyperbolic smoothing of the curve's knees, linear light [supp. F]")
    max_gain: Positive = setting(10.0, "largest gain of one capture")
    calibration_captures: Count = setting(16, "captures pooled for the external base's matrix")
    shard: Count = setting(50, "captures per shard; shards are independent jobs")
    depth: Literal["files", "network"] = setting(
        "network", "depth maps beside the captures, or Depth-Anything-V2-Small [supp. F]"
    )
    depth_model: str = setting("depth-anything/Depth-Anything-V2-Small-hf", "hub name or local folder")
    depth_revision: str = setting("main", "pinned revision of the depth network")
    depth_batch: Count = setting(8, "pictures per forward pass")
    seed: Steps = setting(1400, "draws")


class ControllerSettings(Settings):
    """The scene-agnostic RAW controller."""

    checkpoint: str | None = setting(
        None, "an imported controller used instead of training the method's; see `fujinsplat controller import`"
    )
    steps: Steps = setting(1500, "updates; the final iterate is used [supp. G]")
    batch: Count = setting(16, "[supp. G]")
    lr: Positive = setting(3e-4, "AdamW learning rate [supp. G]")
    lr_final: Fraction = setting(0.02, "cosine multiplier at the last update; 1 (published) is a constant rate")
    weight_decay: Weight = setting(1e-5, "[supp. G]")
    clip: Positive = setting(5.0, "gradient-norm clip [supp. G]")
    beta: Positive = setting(0.05, "smooth-L1 transition on tanh-squashed coefficients [supp. G]")
    weight_reconstruction: Weight = setting(0.20, "image reconstruction term [supp. G]")
    weight_encoded: Weight = setting(0.25, "encoded L1 inside the reconstruction term [supp. G]")
    weight_range: Weight = setting(0.01, "out-of-range penalty inside the reconstruction term [supp. G]")
    checkpoint_seconds: Positive = setting(30, "time between checkpoints")
    seed: Steps = setting(90202, "[supp. G]")


class SplatSettings(Settings):
    """Gaussian optimisation and the delta-ISP."""

    iterations: Count = setting(18000, "[Sec. 4]; the windows below scale with it")
    sh_degree: Annotated[int, Field(ge=0, le=3)] = setting(3, "[supp. G]")
    sh_interval: Count = setting(1000, "iterations between raises of the SH degree")
    max_width: Count = setting(1600, "training pictures are area-resized to at most this width")
    lambda_dssim: Fraction = setting(0.2, "[supp. G]")
    densify_from: Steps = setting(500, "[supp. G]")
    densify_until: Steps = setting(6000, "[supp. G]")
    densify_every: Count = setting(100, "[supp. G]")
    grad_threshold: Positive = setting(2e-4, "image-plane gradient that densifies (3DGS default)")
    prune_opacity: Fraction = setting(0.005, "3DGS default")
    max_gaussians: Count = setting(3_000_000, "densification stops here, so that memory is bounded")
    lr_means: Positive = setting(1.6e-4, "times the scene's extent, decayed to lr_means_final (3DGS default)")
    lr_means_final: Positive = setting(1.6e-6, "3DGS default")
    lr_scales: Positive = setting(5e-3, "3DGS default")
    lr_quats: Positive = setting(1e-3, "3DGS default")
    lr_opacities: Positive = setting(5e-2, "3DGS default")
    lr_sh0: Positive = setting(2.5e-3, "3DGS default")
    lr_shn: Positive = setting(1.25e-4, "3DGS default: a twentieth of lr_sh0")
    delta_from: Steps = setting(13000, "first delta-ISP iteration minus one [Sec. 4]")
    delta_until: Steps = setting(16000, "last delta-ISP iteration [Sec. 4]")
    lr_alpha: Positive = setting(5e-3, "[supp. G]")
    checkpoint_seconds: Positive = setting(120, "time between checkpoints")
    memory_mb: Count = setting(4000, "budget for cached cameras and developed targets")
    bake_steps: Steps = setting(300, "fine-tuning of the exported colours, opacities and shapes")
    seed: Steps = setting(190087, "[supp. G]")

    @model_validator(mode="after")
    def _windows(self) -> "SplatSettings":
        if not self.delta_from <= self.delta_until:
            raise ValueError(f"delta_from ({self.delta_from}) must not lie after delta_until ({self.delta_until})")
        if not self.densify_from <= self.densify_until:
            raise ValueError(
                f"densify_from ({self.densify_from}) must not lie after densify_until ({self.densify_until})"
            )
        return self


class EvaluateSettings(Settings):
    """Scores of rendered held views."""

    lpips: bool = setting(True, "score LPIPS as well [supp. H]")
    lpips_weights: str | None = setting(None, "VGG16 weights file; otherwise found as the README says")
    repeats: Count = setting(1, "seeds per scene and variant; tables show mean and deviation when above 1")


class AnalysisSettings(Settings):
    """The paper's read-only studies."""

    probes: Annotated[int, Field(ge=2)] = setting(9, "probe grid side [supp. D, E]")
    prototypes: Count = setting(8, "vocabulary prototypes [supp. E]")
    strengths: tuple[Fraction, ...] = setting((0.25, 0.5, 0.75, 1.0), "[supp. E]")
    refits: Annotated[int, Field(ge=2)] = setting(5, "random starts per refitted pair [supp. D]")
    classifier_steps: Steps = setting(600, "updates of the vocabulary classifier [supp. E]")
    seed: Steps = setting(33, "refits and classifier")


class ReportSettings(Settings):
    """Figures and report.html."""

    viewer: bool = setting(True, "interactive 3D view of each scene (needs Node)")
    studies: bool = setting(True, "the paper's read-only studies, where there are clean twins [supp. A, B, D, E]")


class StageSettings(Settings):
    """One block per stage; what is left out keeps the default."""

    demo: DemoSettings = DemoSettings()
    capture: CaptureSettings = CaptureSettings()
    isp: IspSettings = IspSettings()
    actions: ActionsSettings = ActionsSettings()
    synthesis: SynthesisSettings = SynthesisSettings()
    controller: ControllerSettings = ControllerSettings()
    splat: SplatSettings = SplatSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    report: ReportSettings = ReportSettings()


class Dataset(Settings):
    """Where pictures come from."""

    root: str = setting(..., "folder with one folder per scene")
    scenes: Annotated[list[str], Field(min_length=1)] = setting(..., "scene folders, in table order")
    made_by_demo: bool = setting(False, "the workflow makes this dataset with `fujinsplat demo`")
    external: str | None = setting(None, "folder of smoke-free RAW captures for the synthesis stage")
    clean_twins: bool = setting(True, "source views have clean twins (val/)")
    held_views: bool = setting(True, "there are held views to score against (test/)")
    excluded_from_seven: str | None = setting(None, "scene left out of the seven-scene mean [supp. H]")
    settings: dict[str, dict[str, Any]] = setting({}, "overlay on the global settings, for this dataset only")


class Variant(Settings):
    """One row of the paper's tables. Defaults are the method itself."""

    input: Literal["raw", "rgb", "none"] = setting("raw", "what the controller sees; none: no controller [Sec. 4.2]")
    base: Literal["raw", "none"] = setting("raw", "none trains on the camera's own RGB [supp. I]")
    curves: bool = setting(True, "tone curves of the action [Sec. 4.2]")
    couplings: bool = setting(True, "colour couplings of the action [Sec. 4.2]")
    delta: bool = setting(True, "delta-ISP [Sec. 3.4]")
    shared: bool = setting(False, "every view gets the scene's mean action: the delta-ISP with all scalars kept at 0")
    objective: Literal["label", "reconstruction"] = setting("label", "controller objective [Sec. 4.2]")
    K: Count = setting(7, "couplings [supp. C]")
    M: Annotated[int, Field(ge=2)] = setting(16, "knots per curve [supp. C]")
    labels: Literal["published", "fitted"] | None = setting(None, "label compiler; none: the settings' one")
    coordinate: Literal["base", "raw"] | None = setting(None, "draw coordinate; none: the settings' one")
    draws: Literal["veil", "actions"] | None = setting(None, "label family; none: the settings' one")
    oracle: Literal["none", "expert", "clean"] = setting("none", "uses clean twins: a reference row, never ranked")
    title: str | None = setting(None, "name in tables; none: the row's key")

    @model_validator(mode="after")
    def _possible(self) -> "Variant":
        if self.base == "none" and self.input != "none":
            raise ValueError("base: none trains on the camera RGB, so input must be none too")
        if self.delta and self.input == "none" and self.oracle != "expert":
            raise ValueError("delta needs per-view actions: set delta: false, or give the variant an input")
        if self.shared and (self.delta or self.input == "none"):
            raise ValueError(
                "shared is the mean of a scene's predictions: give the variant an input and set delta: false"
            )
        return self


class Config(Settings):
    """config.yaml."""

    dataset: str = setting("demo", "which block of `datasets` plain `snakemake --cores all` builds")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "auto: CUDA where torch sees it")
    datasets: Annotated[dict[str, Dataset], Field(min_length=1)] = setting(..., "one block per dataset")
    variants: Annotated[dict[str, Variant], Field(min_length=1)] = setting(..., "one row per variant")
    groups: dict[str, list[str]] = setting({}, "named lists of variants; `all` is every variant")
    build: str = setting("all", "the group (or single variant) that plain `snakemake --cores all` builds")
    scenes: list[str] | None = setting(None, "restrict the build to these scenes of the dataset")
    settings: StageSettings = setting(StageSettings(), "what differs from the paper's values, by stage")

    @model_validator(mode="after")
    def _names(self) -> "Config":
        from fujinsplat.configfile import nearest

        if self.dataset not in self.datasets:
            raise ValueError(
                f"dataset: {self.dataset!r} has no block in datasets{nearest(self.dataset, self.datasets)}"
            )
        for group, members in self.groups.items():
            for name in members:
                if name not in self.variants:
                    raise ValueError(f"groups.{group}: no variant {name!r}{nearest(name, self.variants)}")
        buildable = ["all", *self.groups, *self.variants]
        if self.build not in buildable:
            raise ValueError(f"build: {self.build!r} is no group or variant{nearest(self.build, buildable)}")
        for scene in self.scenes or []:
            known = self.datasets[self.dataset].scenes
            if scene not in known:
                raise ValueError(f"scenes: dataset {self.dataset} has no scene {scene!r}{nearest(scene, known)}")
        for name, block in self.datasets.items():
            self.settings_for(name)
            if block.made_by_demo and block.root != f"data/{name}":
                raise ValueError(f"datasets.{name}.root: a dataset made by the demo lies at data/{name}")
        return self

    def settings_for(self, dataset: str) -> StageSettings:
        """The global settings with the dataset's overlay on top, validated as one."""
        from fujinsplat.configfile import checked

        merged = self.settings.model_dump(exclude_unset=True)
        for stage, values in self.datasets[dataset].settings.items():
            merged[stage] = {**merged.get(stage, {}), **values}
        return checked(StageSettings, merged, f"datasets.{dataset}.settings")

    def members(self) -> list[str]:
        """The variants that the build asks for, in table order."""
        if self.build == "all":
            return list(self.variants)
        return self.groups.get(self.build, [self.build])
