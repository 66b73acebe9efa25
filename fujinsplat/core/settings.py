"""Every setting of every stage, once: its meaning, its value in the paper, and the section it comes from.

Where our default is another than the paper's, `paper=` holds the paper's; `StageSettings.paper()` is the published
recipe.

`config.yaml` holds only what differs from here. A dataset block may carry its own `settings` overlay (the demo has its
smaller numbers there). The JSON schema of `config.yaml` is generated from these models; see `fujinsplat config schema`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
# bounds that no sensible number meets, so that a slipped zero is a sentence and not a machine without memory
Count = Annotated[int, Field(ge=1, le=10**9)]
Steps = Annotated[int, Field(ge=0, le=10**12)]
Rate = Annotated[float, Field(gt=0, le=1e6)]  # of learning
Side = Annotated[int, Field(ge=32, le=2**14, multiple_of=2)]


_SAME = object()


def setting(default: Any, meaning: str, *, paper: Any = _SAME, **limits: Any) -> Any:
    """A documented field: `meaning` names the paper's section in brackets where the value comes from it.

    `paper` is the published value where ours is another one; left out, the two are the same.
    """
    extra = None if paper is _SAME else {"paper": list(paper) if isinstance(paper, tuple) else paper}
    return Field(default, description=meaning, json_schema_extra=extra, **limits)


class Checked(BaseModel):
    """Values that are checked when they are read and never change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(Checked):
    """Settings of a stage or a part, each with the paper's value."""

    @classmethod
    def published(cls, name: str) -> Any:
        """The paper's value of one setting."""
        field = cls.model_fields[name]
        if isinstance(field.default, Settings):
            return type(field.default).paper()
        extra = field.json_schema_extra
        value: Any = extra["paper"] if isinstance(extra, dict) and "paper" in extra else field.default
        return tuple(value) if isinstance(field.default, tuple) and value is not None else value

    @classmethod
    def paper(cls) -> Self:
        """The published recipe: every setting at the paper's value."""
        return cls(**{name: cls.published(name) for name in cls.model_fields})

    @classmethod
    def chosen(cls) -> dict[str, Any]:
        """The paper's value of every setting where our default is another one, by name."""
        changed = {name: cls.published(name) for name, field in cls.model_fields.items()}
        return {name: value for name, value in changed.items() if value != cls.model_fields[name].default}


class DemoSettings(Settings):
    """The embedded demo world, made from a seed."""

    seed: Steps = setting(20260, "another seed gives another world")
    width: Side = setting(240, "picture width in pixels; RAW has twice")
    height: Side = setting(160, "picture height in pixels; RAW has twice")
    source_views: Annotated[int, Field(ge=2, le=10**5)] = setting(24, "smoky views per scene, each with a clean twin")
    held_views: Count = setting(4, "clean held views per scene [supp. H]")
    external: Count = setting(96, "smoke-free external captures for the synthesis stage")
    points: Count = setting(6000, "points of the structure-from-motion cloud, before outliers")
    thickness: Positive = setting(1.0, "optical depth of the smoke over the weather table's; 2 squares every contrast")
    light: Positive = setting(1.0, "exposure over the weather table's; less makes a darker RAW with the same noise")
    noise: Positive = setting(1.0, "standard deviation of the sensor's noise over the demo camera's")
    bank: Weight = setting(1.0, "smoke that hangs before the cameras, as a share of the demo's")
    haze: Weight = setting(0.3, "smoke that fills the room behind it, in the bank's unit")


class CaptureSettings(Settings):
    """RAW decoding and geometry."""

    demosaic: Literal["AHD", "DHT", "VNG", "PPG", "LINEAR"] = setting("AHD", "LibRaw demosaicing [Sec. 4]")
    white_balance: tuple[Positive, Positive, Positive] = setting(
        (2428 / 1024, 1.0, 1700 / 1024), "of decoded arrays that carry none (G = 1): RealX3D's camera"
    )
    max_side: Annotated[int, Field(ge=16)] | None = setting(
        None, "longest side of the decoded views in pixels; larger pictures are area-resized; none: as they are"
    )
    min_posed: Fraction = setting(0.5, "share of source views that must have a pose; the others are left out")
    check_pairs: bool = setting(True, "refuse RAW and camera RGB that do not show one picture")


class MotionSettings(Settings):
    """Poses from nothing: structure from motion on stretched views."""

    side: Annotated[int, Field(ge=64)] = setting(1600, "longest side of the pictures in which features are sought")
    features: Annotated[int, Field(ge=64)] = setting(4096, "most features of a picture")
    exhaustive: Count = setting(200, "up to so many views every pair is matched; beyond, neighbours and look-alikes")
    neighbours: Count = setting(12, "views before and after that are matched beyond that number")
    alike: Count = setting(24, "most alike views that are matched beyond that number")
    camera_model: Literal["SIMPLE_RADIAL", "RADIAL", "OPENCV", "OPENCV_FISHEYE", "SIMPLE_RADIAL_FISHEYE", "PINHOLE"] = (
        setting("SIMPLE_RADIAL", "COLMAP's camera model, one camera for each size of picture")
    )
    depth: Positive = setting(3.0, "median distance from cameras to what they see, in the scene's units")
    seed: Steps = setting(0, "structure from motion")


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
    lr_front: Rate = setting(1e-4, "learning rate of exposure, white balance, matrix [supp. B]")
    lr_curves: Rate = setting(2e-4, "learning rate of Shaper257 and Tone257 [supp. B]")
    lr_lattice: Rate = setting(3e-4, "learning rate of G9 and R33 [supp. B]")
    lr_final: Fraction = setting(0.05, "cosine multiplier at the last update; 1.0 at the first [supp. B]")
    weight_mse: Weight = setting(1.0, "mean squared error [supp. B]")
    weight_l1: Weight = setting(0.05, "mean absolute error [supp. B]")
    weight_patch: Weight = setting(0.25, "patch means [supp. B]")
    weight_range: Weight = setting(0.05, "front out-of-range squared hinge [supp. B]")
    weight_jacobian: Weight = setting(0.01, "Jacobian safety [supp. B]")
    weight_lattice: Weight = setting(1e-6, "first-order sampled lattice energy [supp. B]")
    weight_smooth: Weight = setting(1e-7, "second-order lattice, curve curvature, front L2 [supp. B]")
    encoding: Literal["srgb", "none"] = setting(
        "srgb", "after Tone257: the sRGB curve, or nothing (the tone curve itself ends encoded) [supp. B]", paper="none"
    )
    jacobian: Literal["front", "output"] = setting(
        "front",
        "safety of the map up to the lattice, relative to the initial front, or of the whole map to encoded RGB "
        "[supp. B]",
        paper="output",
    )
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

    @model_validator(mode="after")
    def _only_scenes_are_filled_in(self) -> "IspSettings":
        if self.checkpoint and set("{}") & set(self.checkpoint.replace("{scene}", "")):
            raise ValueError(f"checkpoint: {self.checkpoint!r} holds other braces than {{scene}}; remove them")
        return self


class FlowSettings(Settings):
    """Size of the Monotone Color Flow, wherever actions are made."""

    K: Annotated[int, Field(ge=1, le=1000)] = setting(7, "couplings [supp. C]")
    M: Annotated[int, Field(ge=2, le=10000)] = setting(16, "knots per curve [supp. C]")


class ActionsSettings(Settings):
    """Expert actions and the correction distribution."""

    lr: Rate = setting(2e-2, "Adam learning rate [supp. G]")
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
        "base", "where gain and pivot level are measured [supp. F]", paper="raw"
    )
    draws: Literal["veil", "actions"] = setting(
        "veil", "labels from measured (pivot, contrast), or from the fitted expert actions [Sec. 3.3, supp. F]"
    )
    action: Literal["full", "curves", "couplings"] = setting("full", "parts of the action that labels have [Sec. 4.2]")
    population: Literal["whole", "leave_out"] = setting(
        "whole",
        "pairs that draws are made from: all, or (leave_out) for each scene those of the other scenes, so that nothing "
        "learned for a scene has seen its clean twins [supp. H]",
    )
    veil: Literal["measured", "published"] = setting(
        "measured",
        "what a draw takes from its pair: brightness, pivot and contrast together, or (published) the direction of its "
        "pivot alone, with one level for all and the contrast from depth [supp. F]",
        paper="published",
    )
    smoke: Literal["room", "uniform"] = setting(
        "room",
        "how smoke lies over a capture: over its RAW, by depth and uneven, with the label that its pair measures, or "
        "(uniform) the same veil everywhere",
        paper="uniform",
    )
    by_depth: Fraction = setting(0.6, "room smoke: largest share of its optical depth that grows with distance")
    relight: Weight = setting(
        0.7, "widest stretch of a capture's own range of light (log of the exponent); 0: as it is", paper=0.0
    )
    tone: Literal["measured", "exposure"] = setting(
        "measured",
        "the external base's tone: the scenes' calibrated bases', or one exposure [supp. F]",
        paper="exposure",
    )
    uneven: Weight = setting(0.25, "room smoke: relative spread across the picture")
    jitter: Weight = setting(0.08, "relative spread around a measured brightness, level and optical depth", paper=0.0)
    light: Fraction = setting(0.25, "share of draws with light smoke (t near 1)", paper=0.0)
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
    depth_revision: str = setting(
        "5426e4f0f36572d16453bbda7a8389317b1bef99", "revision of the depth network: a commit, which cannot change"
    )
    depth_batch: Count = setting(8, "pictures per forward pass")
    seed: Steps = setting(1400, "draws")


class ControllerSettings(Settings):
    """The scene-agnostic RAW controller."""

    checkpoint: str | None = setting(
        None, "an imported controller used instead of training the method's; see `fujinsplat controller import`"
    )
    input: Literal["raw", "rgb"] = setting("raw", "what it sees: RAW, or the encoded base output [Sec. 4.2]")
    objective: Literal["label", "reconstruction"] = setting("label", "what it is trained for [Sec. 4.2]")
    steps: Steps = setting(1500, "updates; the final iterate is used [supp. G]")
    batch: Count = setting(16, "[supp. G]")
    lr: Rate = setting(3e-4, "AdamW learning rate [supp. G]")
    lr_final: Fraction = setting(0.02, "cosine multiplier at the last update; 1 is a constant rate", paper=1.0)
    start: Literal["scaled", "torch"] = setting(
        "scaled",
        "weights before the first update: scaled to the summaries, or torch's own; heads at zero",
        paper="torch",
    )
    presentations: Annotated[int, Field(ge=1, le=8)] = setting(
        8, "turned and flipped views whose predictions are averaged; 1 looks once [Sec. 3.3]", paper=1
    )
    weight_decay: Weight = setting(1e-5, "[supp. G]")
    clip: Positive = setting(5.0, "gradient-norm clip [supp. G]")
    beta: Positive = setting(0.05, "smooth-L1 transition on tanh-squashed coefficients [supp. G]")
    weight_reconstruction: Weight = setting(0.20, "image reconstruction term [supp. G]")
    weight_encoded: Weight = setting(0.25, "encoded L1 inside the reconstruction term [supp. G]")
    weight_range: Weight = setting(0.01, "out-of-range penalty inside the reconstruction term [supp. G]")
    checkpoint_seconds: Positive = setting(30, "time between checkpoints")
    seed: Steps = setting(90202, "[supp. G]")


PAPER_ITERATIONS = 18_000  # windows of a training are given for a run of this length, and scale with it [Sec. 4]


class SplatSettings(Settings):
    """Gaussian optimisation, whatever the row."""

    iterations: Count = setting(PAPER_ITERATIONS, "[Sec. 4]; windows scale with it")
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
    lr_means: Rate = setting(1.6e-4, "times the scene's extent, decayed to lr_means_final (3DGS default)")
    lr_means_final: Rate = setting(1.6e-6, "3DGS default, reached at lr_horizon")
    lr_horizon: Count = setting(
        18000,
        "iterations over which the positions' rate decays, scaled like the windows; 18,000 is the run",
        paper=30000,
    )
    lr_scales: Rate = setting(5e-3, "3DGS default")
    lr_quats: Rate = setting(1e-3, "3DGS default")
    lr_opacities: Rate = setting(5e-2, "3DGS default")
    lr_sh0: Rate = setting(2.5e-3, "3DGS default")
    lr_shn: Rate = setting(1.25e-4, "3DGS default: a twentieth of lr_sh0")
    points: Literal["dataset", "views"] = setting(
        "dataset", "points it starts from: the dataset's, or triangulated from the smoky views with the known poses"
    )
    depth_from_points: Weight = setting(0.0, "weight of a loss that holds the splats' depth to the points'")
    depth_every: Count = setting(3, "iterations from one depth loss to the next")
    checkpoint_seconds: Positive = setting(120, "time between checkpoints")
    selective_adam: bool = setting(False, "update only the Gaussians a view sees (gsplat's SelectiveAdam; CUDA alone)")
    memory_mb: Count = setting(4000, "budget for cached cameras and developed targets")
    bake_steps: Steps = setting(300, "fine-tuning of the exported colours, opacities and shapes")
    seed: Steps = setting(190087, "[supp. G]")

    @model_validator(mode="after")
    def _windows(self) -> "SplatSettings":
        if not self.densify_from <= self.densify_until:
            raise ValueError(
                f"densify_from ({self.densify_from}) must not lie after densify_until ({self.densify_until})"
            )
        return self


class EvaluateSettings(Settings):
    """Scores of rendered held views."""

    lpips: bool = setting(True, "score LPIPS as well [supp. H]")
    lpips_weights: str | None = setting(None, "VGG16 weights file; otherwise found as the README says")


class AnalysisSettings(Settings):
    """The paper's read-only studies."""

    probes: Annotated[int, Field(ge=2)] = setting(9, "probe grid side [supp. D, E]")
    prototypes: Count = setting(8, "vocabulary prototypes [supp. E]")
    strengths: tuple[Fraction, ...] = setting((0.25, 0.5, 0.75, 1.0), "[supp. E]")
    refits: Annotated[int, Field(ge=2)] = setting(5, "random starts per refitted pair [supp. D]")
    classifier_steps: Steps = setting(600, "updates of the vocabulary classifier [supp. E]")
    seed: Steps = setting(33, "refits and classifier")


class ExportSettings(Settings):
    """What leaves the house."""

    tiff: bool = setting(False, "16-bit linear TIFF files of the cleared views, beside the 8-bit PNG files")


class ReportSettings(Settings):
    """Figures and report.html."""

    viewer: bool = setting(True, "interactive 3D view of each scene (needs Node)")
    studies: bool = setting(True, "the paper's read-only studies, where there are clean twins [supp. A, B, D, E]")


class StageSettings(Settings):
    """One block per stage; what is left out keeps the default. Parts add blocks of their own (`fujinsplat.rows`)."""

    demo: DemoSettings = DemoSettings()
    motion: MotionSettings = MotionSettings()
    capture: CaptureSettings = CaptureSettings()
    isp: IspSettings = IspSettings()
    flow: FlowSettings = FlowSettings()
    actions: ActionsSettings = ActionsSettings()
    synthesis: SynthesisSettings = SynthesisSettings()
    controller: ControllerSettings = ControllerSettings()
    splat: SplatSettings = SplatSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    export: ExportSettings = ExportSettings()
    report: ReportSettings = ReportSettings()
