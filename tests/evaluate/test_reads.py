"""The supervision table compares what parts declare with what every job before a row's model really opened."""

import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.outline import Outline, RowFacts
from fujinsplat.evaluate.tables import build_table

MODEL = "results/demo/gaussians/Hayate/mine.linear.safetensors"
# how an expert-action oracle is made: its training opens no picture, what it is made from does
MADE = {
    "results/demo/capture/Hayate/source": ("capture_source", ["data/Hayate"], {"source"}),
    "results/demo/references/clean/Hayate": ("capture_clean", ["data/Hayate"], {"clean"}),
    "results/demo/base/Hayate.safetensors": ("isp_calibrate", ["results/demo/capture/Hayate/source"], {"source"}),
    "results/demo/actions/Hayate.safetensors": (
        "actions_fit",
        ["results/demo/base/Hayate.safetensors", "results/demo/references/clean/Hayate"],
        {"source", "clean"},
    ),
    "results/demo/developed/Hayate/mine.safetensors": (
        "develop_scene",
        ["results/demo/actions/Hayate.safetensors"],
        set(),
    ),
    MODEL: ("splat_train", ["results/demo/developed/Hayate/mine.safetensors"], set()),
}


def made(folder: Path, **changes: set[str]) -> Path:
    """Outputs, Snakemake's records of them, and the jobs' own; `changes`: what a rule's job opened instead."""
    for output, (rule, inputs, opened) in MADE.items():
        path = folder / output
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        record = folder / ".snakemake/metadata" / urlsafe_b64encode(output.encode()).decode()
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"rule": rule, "input": inputs}))
        log = folder / "results/demo/logs" / f"{rule}.reads.json"
        log.parent.mkdir(parents=True, exist_ok=True)
        kinds = changes.get(rule, opened)
        log.write_text(json.dumps({"job": rule, "outputs": [output], "opened": {kind: ["x"] for kind in kinds}}))
    return folder / "results/demo"


def table(results: Path, **supervision: str) -> list[list[str]]:
    row = RowFacts(title="Mine", supervision=supervision)
    stages = {"Base ISP calibration": {"source": "read"}}
    outline = Outline(dataset="demo", scenes=["Hayate"], rows={"mine": row}, stages=stages)
    return [[cell.text() for cell in line.cells] for line in build_table("supervision", outline, results).rows]


def test_what_is_declared_and_what_was_opened_agree_through_all_that_was_made(tmp_path):
    lines = table(made(tmp_path), source="read", clean="read")
    assert ["Mine", "read", "read", "–", "seen"] in lines
    assert ["Base ISP calibration", "read", "–", "–", "isp_calibrate"] in lines


def test_a_clean_twin_behind_a_row_that_declares_none_fails_the_table(tmp_path):
    with pytest.raises(UserError, match=r"behind the row 'mine' opened clean and source and its parts declare source"):
        table(made(tmp_path), source="read")


def test_a_declared_need_that_nothing_opened_fails_it_too(tmp_path):
    with pytest.raises(UserError, match="opened source and its parts declare clean and source"):
        table(made(tmp_path, actions_fit={"source"}), source="read", clean="read")


def test_a_stage_that_opened_more_than_it_declares_fails_it(tmp_path):
    results = made(tmp_path, isp_calibrate={"source", "held"})
    with pytest.raises(UserError, match="isp_calibrate opened held views, which the stage 'Base ISP calibration'"):
        table(results, source="read", clean="read", held="read")


def test_without_a_record_of_every_job_nothing_is_claimed(tmp_path):
    results = made(tmp_path)
    (results / "logs/actions_fit.reads.json").unlink()
    assert ["Mine", "read", "–", "–", "no record"] in table(results, source="read")


def test_a_damaged_record_is_one_sentence(tmp_path):
    results = made(tmp_path)
    (results / "logs/actions_fit.reads.json").write_text("{")
    with pytest.raises(UserError, match=r"actions_fit.reads.json is no record of a job"):
        table(results)
