"""One small demo build, shared by every test that needs a real one."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numba
import pytest
import yaml
from filelock import FileLock
from hypothesis import settings as hypothesis_settings

from fujinsplat.core import gpu

ROOT = Path(__file__).parents[1]

# the same examples on every machine; FUJINSPLAT_TEST_SEARCH=1 looks for new ones
hypothesis_settings.register_profile("fixed", derandomize=not os.environ.get("FUJINSPLAT_TEST_SEARCH"))
hypothesis_settings.load_profile("fixed")

# a card without a driver is told at each `device: auto`; the tests do their work on the CPU then
if gpu.undriven():
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

TORCH_THREADS = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))

# small enough for two cores, large enough that every stage does its real work
TINY = {
    "demo": {"width": 96, "height": 64, "source_views": 6, "held_views": 2, "external": 12, "points": 800},
    "isp": {"warmup_steps": 10, "joint_steps": 30, "pixels": 2048, "patches": 4, "patch_size": 16},
    "actions": {"steps": 60, "pixels": 512},
    "synthesis": {"depth": "files", "shard": 6, "pixels": 512, "calibration_captures": 4},
    "controller": {"steps": 40},
    "splat": {"iterations": 150, "bake_steps": 20},
    "analysis": {"classifier_steps": 40, "refits": 2},
}


@dataclass(frozen=True)
class Workspace:
    """A folder in which Snakemake runs the project's Snakefile on its own config.yaml."""

    folder: Path

    def config(self) -> dict:
        return yaml.safe_load((self.folder / "config.yaml").read_text())

    def write_config(self, config: dict) -> None:
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    def snakemake(self, *arguments: str, check: bool = True, timeout: int = 500) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
        command += arguments
        environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
        return done

    def make(self, *targets: str, on_card: Path | None = None) -> None:
        """The targets by the jobs that Snakemake plans, each in a process of its own, forked where torch is loaded.

        A job's start is most of its time in a tiny world. What it is told, opens and writes is as in a real run.
        `on_card`: on a pretend GPU, and counted in that file.
        """
        planned = self.snakemake("--dry-run", "--printshellcmds", "--", *targets).stdout
        script = "\n".join(re.findall(r"^Shell command: (.*)$", planned, re.M))
        command = [sys.executable, str(ROOT / "tests/forked.py"), *([str(on_card)] if on_card else [])]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
        done = subprocess.run(
            command, input=script, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]

    def jobs(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each rule a dry run would run."""
        done = self.snakemake("--dry-run", *arguments)
        table = re.search(r"^Job stats:\n.*?\n\n", done.stdout + done.stderr, re.S | re.M)
        rows = re.findall(r"^(\w+)\s+(\d+)$", table.group(0), re.M) if table else []
        return {rule: int(count) for rule, count in rows if rule not in ("total", "all")}

    def differing(self, other: "Workspace", names: Iterable[Path]) -> list[str]:
        """Those of the named files that are missing on one side, or differ in more than the times they tell."""
        pairs = {str(name): (self.folder / name, other.folder / name) for name in names}
        return [name for name, pair in pairs.items() if not (all(map(Path.is_file, pair)) and same_content(*pair))]


# what no two runs share
MEASURED = ("seconds", "iterations_per_second", "memory_mb", "peak_memory_mb")


def same_content(left: Path, right: Path) -> bool:
    """Equal bytes but for measured times and memory: values in JSON, what a page marks, the picture of the pipeline."""

    def values(path: Path) -> list:
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        return [json.loads(line, object_pairs_hook=unmeasured) for line in lines]

    def plain(path: Path) -> str:
        return re.sub(r"<!--measured-->.*?<!--/measured-->", "", path.read_text(), flags=re.S)

    def unmeasured(pairs: list) -> dict:
        return {name: value for name, value in pairs if name not in MEASURED}

    if left.suffix in (".json", ".jsonl"):
        return values(left) == values(right)
    if left.suffix == ".html":
        return plain(left) == plain(right)
    if left.stem == "pipeline":
        return right.is_file()
    return filecmp.cmp(left, right, shallow=False)


def workspace(folder: Path, scenes: list[str], **changes) -> Workspace:
    """A fresh workspace with the tiny demo settings."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["datasets"]["demo"]["scenes"] = scenes
    config["datasets"]["demo"]["settings"] = {stage: dict(values) for stage, values in TINY.items()}
    config["device"] = "cpu"
    config.update(changes)
    folder.mkdir(parents=True, exist_ok=True)
    made = Workspace(folder)
    made.write_config(config)
    return made


RULES = """
import json, sys
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.io import strip_wildcard_constraints as plain
from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
    workflow = api.workflow(resource_settings=ResourceSettings(), snakefile=Path(sys.argv[1]))._workflow
    rules = {
        rule.name: {
            "shell": rule.shellcmd,
            "run": rule.is_run,
            "log": [plain(str(path)) for path in rule.log],
            "benchmark": plain(str(rule.benchmark)),
            "output": [plain(str(path)) for path in rule.output],
            "wildcards": sorted(rule.wildcard_names),
            "resources": sorted(rule.resources.keys()),
            "conda": str(rule.basedir.join(rule.conda_env).get_path_or_uri(secret_free=True)),
        }
        for rule in workflow.rules
        if not rule.norun
    }
print(json.dumps(rules))
"""


@pytest.fixture(scope="session")
def workflow_rules() -> dict[str, dict]:
    """Every rule that runs something as Snakemake has it, with what the Snakefile fills in, by name."""
    command = [sys.executable, "-c", RULES, str(ROOT / "Snakefile")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the shared build first: it is made while other workers run the others, and the longest are no tail."""
    items.sort(key=lambda item: "built" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def make_workspace():
    return workspace


@pytest.fixture(scope="session")
def built(tmp_path_factory, worker_id) -> Workspace:
    """The whole pipeline on two tiny scenes, built once per test session. Read-only: copy it to change it.

    Test workers share it: the first to need it builds it while the others wait.
    """
    alone = worker_id == "master"
    shared = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    with FileLock(shared / "built.lock"):
        made = Workspace(shared / "built")
        if not (shared / "built.done").exists():
            made = workspace(made.folder, ["Kogarashi", "Hayate"], build="main")
            made.snakemake(timeout=3600)
            (shared / "built.done").touch()
    return made


@pytest.fixture(autouse=True)
def _threads():
    """A command run inside a test process changes its thread counts; put them back for the next test."""
    yield
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(TORCH_THREADS)


@pytest.fixture
def fujinsplat(monkeypatch, capsys):
    """`fujinsplat(*arguments, code=0)`: the command as typed, in this process; what it said on its way to `code`."""

    def run(*arguments, code: int = 0) -> subprocess.CompletedProcess:
        from fujinsplat.cli import main

        monkeypatch.setattr(sys, "argv", ["fujinsplat", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = end.code or 0
        said = capsys.readouterr()
        assert ended == code, said.err
        return subprocess.CompletedProcess(sys.argv, ended, said.out, said.err)

    return run


@pytest.fixture
def copy_of_build(built, tmp_path) -> Workspace:
    """A copy whose files keep their times, so that Snakemake sees the same finished build."""
    shutil.copytree(built.folder, tmp_path / "copy", symlinks=True)
    return Workspace(tmp_path / "copy")
