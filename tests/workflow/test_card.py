"""Every stage that uses a GPU, on a device that is not the CPU: pretended by `tests/card.py`."""

import csv

import pytest
import torch

SCENE = "Kogarashi"
ROWS = ("fujinsplat", "smoke")  # encoded targets with the delta-ISP; linear light
ON_CARD = {
    "isp calibrate",
    "actions fit",
    "controller train",
    "views make",
    "develop scene",
    "splat train",
    "splat render",
    "evaluate score",
}


@pytest.mark.skipif(torch.version.cuda is not None, reason="a CUDA build of torch")
def test_every_stage_runs_on_a_pretend_card(copy_of_build, tmp_path):
    """Tensors of two devices never meet, and nothing is made an array before it is on the CPU."""
    config = copy_of_build.config()
    settings = config["datasets"]["demo"]["settings"]
    settings["splat"] |= {"iterations": 3, "bake_steps": 1}
    settings["controller"] |= {"steps": 4}
    settings["actions"] |= {"steps": 3}
    settings["isp"] |= {"warmup_steps": 2, "joint_steps": 3}
    copy_of_build.write_config(config)
    targets = [f"results/demo/metrics/{SCENE}/{row}.csv" for row in ROWS]
    diary = tmp_path / "diary"
    actions = f"results/demo/actions/{SCENE}.safetensors"
    copy_of_build.make(*targets, actions, on_card=diary)
    ran = [line.rsplit(" ", 1) for line in diary.read_text().splitlines()]
    assert {command for command, operations in ran if int(operations)} == ON_CARD
    for target in targets:
        rows = csv.DictReader((copy_of_build.folder / target).read_text().splitlines())
        held = [row for row in rows if row["split"] == "held"]
        assert len(held) == 2 and all(float(row["psnr"]) > 3 for row in held)
