"""The rules on planted renders: real Snakemake, real scoring; tables are made again only when a score changed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from fujinsplat.core.files import write_json

ROOT = Path(__file__).parents[2]
SNAKEFILE = f"""
from fujinsplat.compat.snakemake_rules import fill_in
from fujinsplat.paths import RESULTS, at
from fujinsplat.workflow import Plan
configfile: "config.yaml"
plan = Plan.load(config)
shell.prefix(plan.shell_prefix(workflow))
wildcard_constraints:
    **plan.constraints,
# what comes before evaluation, as if it had been made elsewhere
rule capture_held:
    output: views=directory(at("held"))
rule splat_train:
    output: model=at("model"), log=at("training")
rule render_held:
    output: directory(at("renders"))
include: "{ROOT}/rules/evaluate.smk"
fill_in(workflow, log=at("log"), benchmark=at("benchmark"), conda=plan.conda, params=plan.guard.params)
rule all:
    default_target: True
    input: expand("results/toy/tables/{{table}}.md", table=["main", "ablation", "settings", "supervision"])
"""

RENDERS = {"ours": 5, "ours@2": 6, "raw_base": 30, "raw_base@2": 31}  # levels by which each is off


def save(path: Path, picture: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


class Toy:
    """A folder with two variants' renders of one scene and everything the rules of evaluation need."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "Snakefile").write_text(SNAKEFILE)
        self.configure()
        results = folder / "results" / "toy"
        rng = np.random.default_rng(3)
        for part, renders, stems in (("held", "renders", ["0003"]), ("clean", "renders_source", ["0001", "0002"])):
            write_json(results / "references" / part / "Yama" / "views.json", [{"stem": stem} for stem in stems])
            for stem in stems:
                reference = rng.integers(0, 200, (16, 24, 3)).astype(np.uint8)
                save(results / "references" / part / "Yama" / f"{stem}.png", reference)
                for variant, offset in RENDERS.items():
                    save(results / renders / "Yama" / variant / f"{stem}.png", (reference + offset).astype(np.uint8))
        (results / "gaussians" / "Yama").mkdir(parents=True)
        for variant in RENDERS:
            (results / "gaussians" / "Yama" / f"{variant}.linear.safetensors").write_text(variant)
            (results / "gaussians" / "Yama" / f"{variant}.log.jsonl").write_text('{"iteration": 9, "seconds": 1.5}\n')

    def configure(self, **settings) -> None:
        config = {
            "dataset": "toy",
            "device": "cpu",
            "seeds": 2,
            "datasets": {"toy": {"root": "data", "scenes": ["Yama"]}},
            "variants": {
                "ours": {"correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
                "raw_base": {"paper": "RAW base only"},
            },
            "settings": {"evaluate": {"lpips": False}, "report": {"studies": False}, **settings},
        }
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config))

    def snakemake(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def jobs(self) -> dict[str, int]:
        text = self.snakemake("--dry-run")
        return {rule: int(n) for rule, n in re.findall(r"^(evaluate_\w+)\s+(\d+)$", text, re.M)}

    def read(self, path: str) -> str:
        return (self.folder / "results" / "toy" / path).read_text()


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


def test_scores_tables_and_what_makes_them_again(toy):
    toy.snakemake()
    assert "| ours | PSNR ↑ | **33.36 ± 1.12** ¹ |" in toy.read("tables/main.md")  # 20 log10(255 / 5) and (255 / 6)
    about = json.loads(toy.read("metrics/Yama/ours@2.json"))
    assert about["training"] == {"iteration": 9, "seconds": 1.5}
    assert about["seeds"]["splat"] == json.loads(toy.read("metrics/Yama/ours.json"))["seeds"]["splat"] + 1
    assert "| Final evaluation | – | read | read | evaluate_score |" in toy.read("tables/supervision.md")
    assert toy.jobs() == {}

    scores = toy.folder / "results/toy/metrics/Yama/ours.csv"
    scores.write_text(scores.read_text())  # a newer file with the same content
    assert toy.jobs() == {}

    toy.configure(splat={"iterations": 900})  # no score changes by itself: only the settings table shows it
    assert toy.jobs() == {"evaluate_table": 1}
    toy.snakemake()
    assert "900" in toy.read("tables/settings.md")

    scores.write_text(scores.read_text().replace("34.", "35."))
    assert toy.jobs() == {"evaluate_table": 3}
