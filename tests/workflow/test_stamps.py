"""A changed module is a reason to run again what uses it, and nothing else."""

import json
import os
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from fujinsplat.compat.snakemake_rules import recorded_params
from fujinsplat.workflow import Plan, stamps

TRAIN = ("splat train", ("fujinsplat.splat.models.gaussians", "fujinsplat.splat.reconcilers.none"))
COMMANDS = [TRAIN, ("isp calibrate", ()), ("capture source", ()), ("evaluate tables", ()), ("report page", ())]


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the package, which a test may change."""
    copy = tmp_path / stamps.PACKAGE.name
    shutil.copytree(stamps.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stamps, "PACKAGE", copy)
    yield copy
    forget()


def forget() -> None:
    for function in (stamps.stamp, stamps._text, stamps._exports, stamps._file):
        function.cache_clear()


def all_stamps() -> dict[str, str]:
    forget()
    return {command: stamps.stamp(command, parts) for command, parts in COMMANDS}


@pytest.mark.parametrize(
    "file, changed",
    [
        ("isp/model.py", {"splat train", "isp calibrate"}),
        ("isp/tonefit.py", {"isp calibrate"}),
        ("splat/train.py", {"splat train"}),  # imported inside a function
        ("splat/raster/blend.py", {"splat train"}),  # exported lazily, then imported
        ("capture/raw.py", {"capture source"}),
        ("evaluate/paper.json", {"evaluate tables", "report page"}),  # data that a module names
        ("report/assets/page.css", {"report page"}),
        ("views/fronts/__init__.py", set()),  # a new part is no reason to make the others' results again
        ("splat/reconcilers/delta.py", set()),  # a part that these jobs do not run
        ("core/errors.py", set()),
        ("rows/row.py", set()),
        ("workflow/plan.py", set()),
    ],
)
def test_a_changed_file_changes_the_stamps_of_what_reaches_it(package, file, changed):
    before = all_stamps()
    with (package / file).open("a") as stream:
        stream.write("\n")
    after = all_stamps()
    assert changed <= {name for name in before if before[name] != after[name]}
    if not changed:
        assert before == after


def test_one_commands_change_leaves_the_others_of_its_stage_alone(package):
    before = stamps.stamp("splat render")
    file = package / "splat" / "command.py"
    file.write_text(file.read_text().replace("Reconstruct one scene", "Reconstruct a scene"))
    forget()
    assert stamps.stamp("splat render") == before


def test_a_part_counts_for_the_jobs_that_run_it():
    delta = ("fujinsplat.splat.models.gaussians", "fujinsplat.splat.reconcilers.delta")
    assert "splat/reconcilers/delta.py" in stamps.files_of("splat train", delta)
    assert "splat/reconcilers/delta.py" not in stamps.files_of(*TRAIN)


@pytest.mark.parametrize("name", ["results/demo/base/Hayate.safetensors", f"results/demo/{'x' * 300}.csv"])
def test_what_an_output_was_made_with_is_read_from_snakemakes_records(tmp_path, monkeypatch, name):
    from snakemake.persistence.file import FilePersistence

    monkeypatch.chdir(tmp_path)
    assert recorded_params([name]) == []
    key = urlsafe_b64encode(name.encode()).decode()
    persistence = FilePersistence.__new__(FilePersistence)
    persistence._max_len = 255
    path = Path(persistence._record_path(".snakemake/metadata", name))
    assert path.name in key
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"params": ["'code:0123'", "'{\"a\":1}'"]}))
    assert "code:0123" in recorded_params([name])


@pytest.mark.parametrize("keep_old", [False, True])
def test_changed_pictures_or_weights_of_a_restorer_are_a_reason_to_run_again(tmp_path, keep_old):
    values = yaml.safe_load((stamps.PACKAGE.parent / "config.yaml").read_text()) | {"keep_old": keep_old}
    picture, weights = tmp_path / "Kogarashi" / "0001.png", tmp_path / "w.pth"
    picture.parent.mkdir()
    fronts = {"convir": {"folder": str(tmp_path / "{scene}")}, "aod_net": {"weights": str(weights)}}
    for name, own in fronts.items():
        values["variants"][name]["front"] = {"restored": {"by": name, **own}}
    rule = SimpleNamespace(name="views_make", shellcmd="fujinsplat views make", output=[])
    plan = Plan(values)

    def stamp(row: str, scene: str = "Kogarashi") -> str:
        front = plan.front_name("demo", plan.row(row), plan.row_settings("demo", row))
        return plan.guard.params(rule)["code"](SimpleNamespace(dataset="demo", scene=scene, front=front))

    seen = {"convir": [stamp("convir")], "aod_net": [stamp("aod_net")]}
    elsewhere = stamp("convir", "Hayate"), stamp("dark_channel"), stamp("rgb_base")
    for content in ("a", "longer"):
        for name, path in (("convir", picture), ("aod_net", weights)):
            path.write_text(content)
            seen[name].append(stamp(name))
    os.utime(picture, (1, 1))  # another picture of the same size, copied with its old time
    seen["convir"].append(stamp("convir"))
    (picture.parent / "0002.png").touch()
    seen["convir"].append(stamp("convir"))
    assert len(set(seen["convir"])) == 5 and len(set(seen["aod_net"])) == 3
    assert stamp("convir") == seen["convir"][-1], "nothing changed"
    assert (stamp("convir", "Hayate"), stamp("dark_channel"), stamp("rgb_base")) == elsewhere
