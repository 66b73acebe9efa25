"""What the README tells people to type, typed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text() + (ROOT / "docs" / "photos.md").read_text()


def commands(program: str) -> list[list[str]]:
    """Every command line of `program`, in blocks and in sentences, as a shell would split it."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.S))
    in_blocks = re.findall(rf"^({program} .*)$", blocks, re.M)
    in_sentences = re.findall(rf"`({program} [^`]*)`", re.sub(r"```.*?```", "", README, flags=re.S))
    return [shlex.split(line, comments=True) for line in (*in_blocks, *in_sentences)]


def yaml_blocks() -> list[dict]:
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", README, re.S)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The project as cloned, with the README's own dataset and variant added to config.yaml, and fewer scenes."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("Snakefile", "rules", "fujinsplat", "profiles", "slurm", "envs"):
        (folder / name).symlink_to(ROOT / name)
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    grow = next(block for block in yaml_blocks() if "variants" in block)
    own = next(block for block in yaml_blocks() if "mine" in block["datasets"])
    assert grow["datasets"]["demo"]["scenes"][0] == config["datasets"]["demo"]["scenes"][0]
    scenes = config["datasets"]["demo"]["scenes"]
    named = [scene for scene in scenes if re.search(rf"/{scene}\b", README)]
    config["datasets"]["demo"]["scenes"] = [
        *dict.fromkeys([*scenes[:1], *named]),
        *grow["datasets"]["demo"]["scenes"][-1:],
    ]
    config["variants"] |= grow["variants"]
    config["datasets"] |= own["datasets"]
    mine = config["datasets"]["mine"]
    kitchen = folder / "captures" / mine["scenes"][0]
    mine["root"] = str(kitchen.parent)
    (kitchen / "train").mkdir(parents=True)
    for name in ("train/0001.ARW", "train/0001.JPG", "transforms_train.json", "point3d.ply"):
        (kitchen / name).write_text("stand-in")
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    return folder


@pytest.mark.parametrize("command", commands("snakemake"), ids=" ".join)
def test_every_snakemake_command_is_accepted_and_finds_its_targets(clone, command):
    done = subprocess.run(
        [sys.executable, "-m", *command, *(() if "--unlock" in command else ("--dry-run",))],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def test_there_are_commands_to_check():
    lines = {" ".join(command) for command in commands("snakemake")}
    assert {"snakemake", "snakemake --profile slurm"} <= lines and len(lines) >= 5
    assert len(commands("fujinsplat")) >= 5


@pytest.mark.parametrize("command", commands("fujinsplat"), ids=" ".join)
def test_every_fujinsplat_command_and_option_exists(command):
    from fujinsplat.cli import build

    words = [word for word in command[1:3] if re.fullmatch(r"[a-z]+", word)]
    shown = CliRunner().invoke(build(), [*words, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0, shown.output
    for option in (word for word in command if word.startswith("--")):
        assert re.search(rf"{option}\b", shown.output), f"{option} is not among the options of {' '.join(command)}"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|^)make (\w+)", README, re.M))))
def test_every_make_target_exists(target):
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))]
)
def test_lists_of_settings_are_those_of_the_settings(page, monkeypatch):
    """What differs from the paper is computed, never claimed."""
    from benchmarks.readme import refreshed

    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text()
    assert refreshed(text, None) == text, f"python -m benchmarks.readme results/demo {page}"
    assert "every setting has the paper's value" not in text
