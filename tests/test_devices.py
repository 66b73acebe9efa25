"""What a CPU forgives and a GPU does not, found by reading: tensors made on the wrong device, waiting inside loops.

Each exception is listed with its reason; a new place has to be looked at before it joins the list.
"""

import ast
import re
from pathlib import Path

import pytest

from .reading import Package, Wait

ROOT = Path(__file__).parents[1] / "fujinsplat"
MAKES = {
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm", "tensor",
    "zeros", "from_numpy",
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
    **dict.fromkeys(("splat/ply.py", "isp/fused.py", "actions/fit.py", "isp/picture.py"), CPU),
    "splat/raster/channels.py:_on_cpu": CPU,
    "splat/raster/channels.py:_BlendChannels.forward": CPU,
    "splat/raster/channels.py:_BlendChannels.backward": CPU,
    "splat/loss.py:_Photometric.forward": CPU,
    "develop/corrections/controller.py:act": CPU,
    "views/fronts/cleared.py:make": CPU,
    "splat/foreign.py:_write_nothing": STORED,
    "splat/displays.py:CameraDisplay.tensors": STORED,
    "splat/media/water_field.py:WaterField.finished": STORED,
    "smoke/targets.py:SmokeTargets.state": STORED,
    "smoke/depth.py:_view_depth": MOVED,
    "smoke/depth.py:ray_lengths": CPU,
    "smoke/light.py:hazy_light": MOVED,
    "smoke/light.py:_resized": MOVED,
    "splat/data.py:area_weights": MOVED,
    "splat/data.py:TrainingScene._palette.make": MOVED,
    "splat/media/seasplat.py:SeaMedium.__init__": MOVED,
    "isp/calibration.py:batch_of": MOVED,
    "isp/objective.py:difference_places": MOVED,
    "evaluate/perceptual.py:Perceptual.distance.tensor": MOVED,
    "synthesis/depth.py:DepthNetwork._prepared": MOVED,
    "splat/export.py:sphere": MOVED,
    "splat/media/plain.py:random_views": DRAWN,
    "splat/train.py:_Run._view_of": DRAWN,
    "splat/media/water_field.py:WaterField._start_as_published": DRAWN,
}
# what an iteration runs may wait for the GPU here alone, and in what these call; a file stands for all of its functions
SELDOM = "seldom, not at every iteration"
FIRST = "when a view is first needed"
EACH = "each update reads pixels, or draws places, of its own: they have to be copied"
WAITING = {
    **dict.fromkeys(("warmup.py", "analysis/family.py", "restore/maxim.py", "restore/graph.py"), CPU),
    **dict.fromkeys(("splat/raster/cpu_engine.py", "flow/fused.py", "isp/fused.py", "isp/fused_terms.py"), CPU),
    "splat/raster/channels.py:_on_cpu": CPU,
    "splat/raster/channels.py:_BlendChannels.forward": CPU,
    "splat/raster/channels.py:_BlendChannels.backward": CPU,
    "splat/loss.py:_Photometric.forward": CPU,
    "splat/loss.py:_FusedDisplay.forward": CPU,
    "flow/photometric.py:_Fused.forward": CPU,
    "isp/calibration.py:loss_fused": CPU,
    "controller/data.py:batch_at": CPU,
    "controller/presentations.py:presented": "in training, of observations that lie on the CPU",
    "splat/displays.py:CameraDisplay.__call__": "the Base ISP's CPU kernels show it: in logs, pictures and the export",
    "splat/render.py:camera_tensors": "two small matrices, in pictures and the export's few steps",
    "splat/train.py:_Run._view_of": DRAWN,
    "splat/media/plain.py:random_views": DRAWN,
    "isp/objective.py:difference_places": EACH,
    "isp/calibration.py:batch_of": EACH,
    "splat/data.py:TrainingScene.base": FIRST,
    "splat/data.py:TrainingScene._palette": FIRST,
    "controller/training.py:_Trainer.look_at": SELDOM,
    "splat/media/density.py:WaterDensity._grow": SELDOM,
    "splat/media/density.py:WaterDensity._cull": SELDOM,
    "splat/media/plain.py:PlainField.keep_house": SELDOM,
    "smoke/targets.py:SmokeTargets.reestimate": SELDOM,
    "smoke/targets.py:SmokeTargets.state": STORED,
}
# the reading has to come by these, among others
FOUND = {
    "splat/train.py:_Run.step", "splat/data.py:TrainingScene.develop", "splat/data.py:TrainingScene.target",
    "splat/data.py:Palette.spread", "splat/targets.py:EncodedTargets.loss", "splat/targets.py:LinearTargets.loss",
    "splat/loss.py:ssim", "splat/loss.py:_similarity", "splat/loss.py:_Display.backward",
    "splat/models/gaussians.py:GaussianField.update", "splat/reconcilers/delta.py:DeltaISP.actions",
    "splat/joined.py:JointSightAdam.step", "splat/raster/gsplat_engine.py:rasterize", "smoke/loss.py:linear_loss",
    "flow/reference.py:couple", "splat/media/sea_field.py:SeaField.render", "splat/media/seasplat.py:view_depth",
    "splat/media/watersplatting.py:channels", "controller/training.py:_Trainer.update", "smoke/model.py:Smoke.clear_of",
    "controller/losses.py:function_loss", "isp/calibration.py:optimise", "isp/objective.py:front_safety",
    "isp/reference.py:read_lattice", "actions/fit.py:fit", "splat/export.py:bake",
}  # fmt: skip
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in ROOT.rglob("*.py")
    if path.name == "__init__.py" or "torch" in path.read_text()
}


def calls(tree: ast.AST):
    """(function, call) of every call, the function with its class."""

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
            if isinstance(child, ast.Call):
                yield inner, child
            yield from walk(child, inner)

    return walk(tree, "")


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_torch(call: ast.Call, names: set[str]) -> bool:
    f = call.func
    return isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "torch" and f.attr in names


def test_the_files_are_there():
    assert len(FILES) > 60 and all(path.is_file() for path in FILES)


def moved(tree: ast.AST) -> set[int]:
    """Calls inside an expression that goes to a device: `(…).to(device)`, `parameter.copy_(…)`."""
    ends = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    named = {
        name: [n for n in ends if isinstance(n.func, ast.Attribute) and n.func.attr == name] for name in ("to", "copy_")
    }
    going = [*(n.func for n in named["to"]), *named["copy_"]]
    return {id(call) for expression in going for call in ast.walk(expression)}


def made_without_a_device(file: str, text: str) -> set[str]:
    tree = ast.parse(text)
    going = moved(tree)
    return {
        file if file in MADE else f"{file}:{name}"
        for name, call in calls(tree)
        if is_torch(call, MAKES) and id(call) not in going
        if not any(keyword.arg == "device" for keyword in call.keywords)
    }


def test_tensors_are_made_where_they_are_used():
    found = set().union(*(made_without_a_device(short(path), path.read_text()) for path in FILES))
    assert not found - set(MADE), "give `device=`, or say in MADE why it needs none"
    assert not set(MADE) - found, "no longer there: take them from the list"


def test_an_array_that_stays_on_the_cpu_is_found():
    line = "self.actions = torch.from_numpy(self.developed.actions).to(device)"
    assert line in TEXTS["splat/data.py"] and not made_without_a_device("splat/data.py", TEXTS["splat/data.py"]) - set(
        MADE
    )
    text = TEXTS["splat/data.py"].replace(line, line.removesuffix(".to(device)"))
    assert "splat/data.py:TrainingScene.__init__" in made_without_a_device("splat/data.py", text)


def test_nothing_in_an_iteration_waits_for_the_gpu():
    package = Package(TEXTS)
    assert set(package.functions) | set(package.modules) >= set(WAITING), "no longer there: take it from the list"
    assert set(package.reached(WAITING)) >= FOUND, "renamed, or no longer found by the reading"
    assert not list(map(str, package.waits(WAITING))), "wait less, or say in WAITING why it has to be"


WAYS = [
    "t.sum().item()",
    "int(t[0])",
    "float(t.detach())",
    "x = 1 if t.max() > 0 else 2",
    "assert (t > 0).all()",
    "while not t.any(): pass",
    "torch.where(t > 0)",
    "t[t > 0]",
    "t.cpu()",
    "torch.tensor([1.0], device=t.device)",
    "math.exp(t)",
    "max(t, 0)",
]


@pytest.mark.parametrize(
    "file, function",
    [
        ("controller/training.py", "update"),
        ("splat/media/sea_field.py", "render"),
        ("splat/media/seasplat.py", "view_depth"),
        ("isp/objective.py", "front_safety"),
    ],
)
def test_whatever_waits_is_found(file, function):
    """Put into a function that an iteration runs, each kind of waiting is told with its place."""
    tree = ast.parse(TEXTS[file])
    (node,) = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
    node.body[:0] = ast.parse("\n".join(["t = torch.zeros(3)", *WAYS])).body
    waits: list[Wait] = Package(TEXTS | {file: ast.unparse(tree)}).waits(WAITING)
    assert {wait.place.rpartition(".")[2].rpartition(":")[2] for wait in waits} == {function}
    assert len({wait.line for wait in waits}) == len(WAYS)


@pytest.mark.parametrize(
    "line", ["x = len(t) > 1", "int(n)", "x = t.shape[0] or n", "torch.where(t > 0, t, n)", "assert t is not None"]
)
def test_what_does_not_wait_is_left_alone(line):
    text = f"import torch\nclass A:\n    def step(self, t: torch.Tensor, n: int):\n        {line}\n"
    assert not Package({"a.py": text}).waits({})


def test_arrays_are_made_of_tensors_on_the_cpu():
    """`.numpy()` of a GPU's tensor fails: outside of the CPU's own functions it follows `.cpu()`."""
    own = ("_Photometric.", "_FusedDisplay.", "_BlendChannels.", "CameraDisplay.__call__", "Reduced.", "score")
    # actions, and the smoke of the views as they were stored: on the CPU whatever the device of the job
    own += ("act", "make")
    # kernels that are called with tensors of the CPU alone, and losses that training has given back
    own += ("_Fused.", "_array", "layer_norm", "draw_losses")
    for path in FILES:
        for name, call in calls(ast.parse(path.read_text())):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not name.startswith(own):
                assert ".cpu()" in ast.unparse(call), f"{short(path)}:{call.lineno} {ast.unparse(call)}"
