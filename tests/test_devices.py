"""What a CPU forgives and a GPU does not, found by reading: tensors made on the wrong device, waiting inside loops.

Each exception is listed with its reason; a new place has to be looked at before it joins the list.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1] / "fujinsplat"
MAKES = {
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm", "tensor",
    "zeros",
}  # fmt: skip
# the modules whose tensors may lie on a GPU: these, and every one that speaks of devices
KNOWN = [
    *ROOT.glob("splat/*.py"),
    *ROOT.glob("splat/media/*.py"),
    *ROOT.glob("splat/models/*.py"),
    *ROOT.glob("splat/reconcilers/*.py"),
    *(ROOT / "splat" / "raster" / name for name in ("engine.py", "gsplat_engine.py", "channels.py", "reference.py")),
    *(ROOT / "controller" / name for name in ("network.py", "losses.py", "training.py", "presentations.py")),
    *(ROOT / "smoke" / name for name in ("targets.py", "loss.py", "light.py", "model.py", "depth.py", "estimation.py")),
    *ROOT.glob("actions/*.py"),
    *ROOT.glob("develop/corrections/*.py"),
    *ROOT.glob("views/fronts/*.py"),
    *(ROOT / "flow" / name for name in ("reference.py", "operator.py")),
    *(ROOT / "isp" / name for name in ("objective.py", "calibration.py", "samples.py", "reference.py", "picture.py")),
    ROOT / "evaluate" / "perceptual.py",
]
SPEAKING = [path for path in ROOT.rglob("*.py") if {"torch", "device"} <= set(re.findall(r"\w+", path.read_text()))]
FILES = sorted({*KNOWN, *SPEAKING})

CPU = "runs on the CPU alone"
MOVED = "moved to the device by its caller or in the same line"
DRAWN = "drawn on the CPU, so that every device draws the same"
STORED = "goes into a file"

MADE = {
    "splat/raster/channels.py:_on_cpu": CPU,
    "splat/loss.py:_Photometric.forward": CPU,
    "splat/ply.py:read_ply": CPU,
    "splat/foreign.py:_write_nothing": STORED,
    "splat/displays.py:CameraDisplay.tensors": STORED,
    "splat/media/water_field.py:WaterField.finished": STORED,
    "smoke/targets.py:SmokeTargets.state": STORED,
    "actions/fit.py:score": STORED,
    "smoke/depth.py:_view_depth": MOVED,
    "smoke/depth.py:ray_lengths": CPU,
    "splat/data.py:area_weights": MOVED,
    "splat/export.py:sphere": MOVED,
    "splat/media/seasplat.py:SeaMedium.__init__": MOVED,
    "isp/objective.py:probe": MOVED,
    "isp/objective.py:difference_places": MOVED,
    "synthesis/depth.py:DepthNetwork._prepared": MOVED,
    "splat/media/plain.py:random_views": DRAWN,
    "splat/train.py:_Run._view_of": DRAWN,
}
# functions that an iteration runs: what waits for the GPU there costs more than its own work
EACH_ITERATION = {
    "splat/train.py": {"_Run.step"},
    "splat/data.py": {"TrainingScene.develop", "TrainingScene.target", "Palette.spread", "Palette.colours_encoded"},
    "splat/targets.py": {"EncodedTargets.loss", "EncodedTargets.after", "LinearTargets.loss"},
    "splat/loss.py": {"ssim", "_similarity", "photometric_loss", "_Display.forward", "_Display.backward"},
    "splat/models/gaussians.py": {"GaussianField.render", "GaussianField.before", "GaussianField.update"},
    "splat/reconcilers/delta.py": {"DeltaISP.deltas", "DeltaISP.actions", "DeltaISP.step"},
    "splat/joined.py": {"JointAdam.step", "JointSightAdam.step", "JoinedGaussians.activated"},
    "splat/raster/gsplat_engine.py": {"rasterize"},
    "smoke/loss.py": {"linear_loss", "depth_loss"},
    "flow/reference.py": {"apply", "curve", "conditioner", "couple"},
}
WAITS = {"item", "tolist", "cpu", "numpy", "nonzero", "unique"}


def calls(path: Path):
    """(function, call) of every call, the function with its class."""

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
            if isinstance(child, ast.Call):
                yield inner, child
            yield from walk(child, inner)

    return walk(ast.parse(path.read_text()), "")


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_torch(call: ast.Call, names: set[str]) -> bool:
    f = call.func
    return isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "torch" and f.attr in names


def test_the_files_are_there():
    assert len(FILES) > 60 and all(path.is_file() for path in FILES)


def test_tensors_are_made_where_they_are_used():
    found = {
        f"{short(path)}:{name}"
        for path in FILES
        for name, call in calls(path)
        if is_torch(call, MAKES) and not any(keyword.arg == "device" for keyword in call.keywords)
    }
    assert not found - set(MADE), "give `device=`, or say in MADE why it needs none"
    assert not set(MADE) - found, "no longer there: take them from the list"


def test_nothing_in_an_iteration_waits_for_the_gpu():
    for file, functions in EACH_ITERATION.items():
        path, seen = ROOT / file, set()
        for name, call in calls(path):
            seen.add(name)
            if name not in functions:
                continue
            waits = isinstance(call.func, ast.Attribute) and call.func.attr in WAITS
            casts = isinstance(call.func, ast.Name) and call.func.id in ("float", "bool") and call.args
            assert not waits and not casts, f"{file}:{call.lineno} {ast.unparse(call)}"
        defined = {
            f"{owner.name}.{node.name}" if owner else node.name
            for owner, body in [(None, ast.parse(path.read_text()).body)]
            + [(c, c.body) for c in ast.parse(path.read_text()).body if isinstance(c, ast.ClassDef)]
            for node in body
            if isinstance(node, ast.FunctionDef)
        }
        assert functions <= defined, f"{file}: {functions - defined} is gone"


def test_arrays_are_made_of_tensors_on_the_cpu():
    """`.numpy()` of a GPU's tensor fails: outside of the CPU's own functions it follows `.cpu()`."""
    own = ("_Photometric.", "_FusedDisplay.", "_BlendChannels.", "CameraDisplay.__call__", "Reduced.", "score")
    # actions, and the smoke of the views as they were stored: on the CPU whatever the device of the job
    own += ("act", "make")
    # kernels that are called with tensors of the CPU alone, and losses that training has given back
    own += ("_Fused.", "_array", "layer_norm", "draw_losses")
    for path in FILES:
        for name, call in calls(path):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not name.startswith(own):
                assert ".cpu()" in ast.unparse(call), f"{short(path)}:{call.lineno} {ast.unparse(call)}"
