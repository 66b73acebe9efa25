"""The workflow as a whole: caching, splits, and growing it by one line."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from fujinsplat.workflow import Plan

ROOT = Path(__file__).parents[2]


def test_touching_nothing_runs_nothing(built):
    assert built.jobs() == {}


@pytest.mark.parametrize(
    "stage, change, first, untouched",
    [
        ("splat", {"lambda_dssim": 0.25}, "splat_train", ["develop_scene", "controller_train", "isp_calibrate"]),
        ("isp", {"joint_steps": 31}, "isp_calibrate", ["capture_source", "capture_clean", "demo_scene"]),
        ("controller", {"steps": 41}, "controller_train", ["synthesis_observe", "isp_calibrate", "capture_source"]),
        ("evaluate", {"lpips": False}, "evaluate_score", ["render_held", "splat_train", "isp_calibrate"]),
    ],
)
def test_a_changed_setting_reruns_its_stage_and_what_depends_on_it(copy_of_build, stage, change, first, untouched):
    config = copy_of_build.config()
    config["datasets"]["demo"]["settings"].setdefault(stage, {}).update(change)
    copy_of_build.write_config(config)
    jobs = copy_of_build.jobs()
    assert first in jobs
    for rule in untouched:
        assert rule not in jobs, jobs


def test_a_value_written_out_that_equals_the_papers_reruns_nothing(copy_of_build):
    config = copy_of_build.config()
    config["datasets"]["demo"]["settings"]["splat"]["sh_degree"] = 3
    copy_of_build.write_config(config)
    assert copy_of_build.jobs() == {}


def test_an_imported_controller_replaces_synthesis_and_training(make_workspace, tmp_path):
    fresh = make_workspace(tmp_path, ["Kogarashi"], build="fujinsplat")
    trained = fresh.jobs()
    assert trained["controller_train"] == 1 and trained["synthesis_draw"] == 1
    config = fresh.config()
    config["datasets"]["demo"]["settings"]["controller"]["checkpoint"] = "authors.safetensors"
    fresh.write_config(config)
    assert "authors.safetensors" in (refused := fresh.snakemake("--dry-run", check=False)).stderr + refused.stdout
    assert refused.returncode, "the file has to exist"
    (tmp_path / "authors.safetensors").touch()
    left = fresh.jobs()
    assert not [rule for rule in left if rule.startswith(("controller", "synthesis"))]
    assert left["develop_scene"] == trained["develop_scene"]


def test_the_workflow_is_planned_when_jobs_end_and_not_every_second(copy_of_build):
    """Snakemake's own limit of job starts plans again and again: more than half a core in a run of a thousand jobs."""
    target = "results/demo/base/Kogarashi.safetensors"
    done = copy_of_build.snakemake(target, "--forcerun", "isp_calibrate", "--verbose")
    assert "isp_calibrate" in done.stdout + done.stderr
    plannings = (done.stdout + done.stderr).count("Resources before job selection")
    assert 1 <= plannings <= 2, "once at the start, once after the only job"


def test_one_more_variant_runs_only_its_own_part(copy_of_build):
    config = copy_of_build.config()
    config["variants"]["mine"] = {"like": "fujinsplat", "reconcile": "none"}
    config["groups"]["main"].append("mine")
    copy_of_build.write_config(config)
    jobs = copy_of_build.jobs()
    assert jobs["splat_train"] == 2
    for shared in (
        "isp_calibrate",
        "controller_train",
        "synthesis_observe",
        "capture_source",
        "actions_veil",
        "views_make",
    ):
        assert shared not in jobs, jobs


def test_one_more_scene_keeps_what_the_others_have(copy_of_build):
    config = copy_of_build.config()
    config["datasets"]["demo"]["scenes"].append("Nowaki")
    copy_of_build.write_config(config)
    jobs = copy_of_build.jobs()
    assert jobs["demo_scene"] == jobs["capture_source"] == jobs["isp_calibrate"] == 1
    assert jobs["actions_fit"] == jobs["actions_veil"] == 1
    assert "demo_external" not in jobs and "synthesis_sample" not in jobs, "captures do not depend on scenes"
    # the controller learns from all scenes; what does not go through it is not made again for the others
    scores = [f"results/demo/metrics/{scene}/raw_base.csv" for scene in config["datasets"]["demo"]["scenes"]]
    assert copy_of_build.jobs(*scores)["splat_train"] == 1


def test_one_more_dataset_is_its_own_build(copy_of_build):
    """A block beside the demo's: the demo stays done, and the new one is built from its own files alone."""
    config = copy_of_build.config()
    settings = config["datasets"]["demo"]["settings"]
    config["datasets"]["mine"] = {
        "root": "data/mine",
        "made_by_demo": True,
        "external": "data/mine/external",
        "scenes": ["Arashi"],
        "settings": settings,
    }
    copy_of_build.write_config(config)
    assert copy_of_build.jobs() == {}
    jobs = copy_of_build.snakemake("--dry-run", "--config", "dataset=mine").stdout
    outputs = re.findall(r"^    output: (.*)$", jobs, re.M)
    assert len(outputs) > 20
    assert all(path.startswith(("results/mine/", "data/mine/")) for line in outputs for path in line.split(", "))


def test_a_mistake_in_the_config_stops_before_any_job(make_workspace, tmp_path):
    workspace = make_workspace(tmp_path, ["Kogarashi"], settings={"isp": {"joint_step": 4}})
    done = workspace.snakemake(check=False)
    assert done.returncode != 0
    assert "settings.isp.joint_step is not a setting; did you mean 'joint_steps'?" in done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["config.yaml"]


def rules_as_written() -> dict[str, str]:
    texts = [path.read_text() for path in sorted((ROOT / "rules").glob("*.smk"))]
    return {rule.split(":")[0]: rule for text in texts for rule in re.split(r"^rule ", text, flags=re.M)[1:]}


def test_every_rule_is_a_shell_call_with_log_and_benchmark(workflow_rules):
    """No `run:` blocks; a log and a benchmark of its own, threads, memory, time and an environment for each."""
    written = rules_as_written()
    assert set(workflow_rules) == set(written) and len(written) > 20
    for name, rule in workflow_rules.items():
        assert rule["shell"] and not rule["run"], name
        assert "FUJINSPLAT_THREADS={threads}" in rule["shell"] and rule["shell"].endswith("> {log:q} 2>&1"), name
        stage, action = name.split("_", 1)
        (log,) = rule["log"]
        for kind, path in (("log", log), ("benchmark", rule["benchmark"])):
            assert path.startswith(f"results/{{dataset}}/{kind}s/{stage}/{action}/"), name
            assert set(re.findall(r"{(\w+)}", path)) == set(rule["wildcards"]), f"{name}: two jobs share one {kind}"
        assert Path(rule["conda"]).is_file(), name
        for resource in ("mem_mb", "runtime"):
            grows = f"        {resource}=plan.grows("
            assert grows in written[name], f"rule {name} asks for no more {resource} after a kill"
    more = Plan.grows(500)
    assert [more(None, attempt) for attempt in (1, 2, 3)] == [500, 1000, 2000]


MAY_USE_A_GPU = {"actions_fit", "controller_train", "splat_train", "render_held", "render_source", "evaluate_score"}
MAY_USE_A_GPU |= {"render_medium", "export_turntable"}
MAY_USE_A_GPU |= {"synthesis_sample"}  # where a network makes the depth


def test_only_a_job_that_was_given_a_gpu_uses_one(workflow_rules):
    """`device: auto`: a rule that profits asks for one GPU; every other job is told to stay on the CPU."""
    asking = {name for name, text in rules_as_written().items() if "        gpu=" in text}
    assert asking == MAY_USE_A_GPU
    assert all("gpu" in rule["resources"] for rule in workflow_rules.values()), "the others are told that it is 0"
    for rule in workflow_rules.values():
        said = rule["shell"].split("; fujinsplat ")[0].replace("{threads}", "2")
        for gpus, device in (("0", "cpu"), ("1", "auto")):
            script = said.replace("{resources.gpu}", gpus) + "; env"
            environment = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True).stdout
            assert f"FUJINSPLAT_DEVICE={device}\n" in environment and "FUJINSPLAT_THREADS=2\n" in environment


# the supervision table of the paper: who may be given clean twins, and who held pictures
MAY_READ_CLEAN = {"capture_clean", "actions_fit", "actions_veil", "evaluate_score", "synthesis_gallery"}
MAY_READ_HELD = {"capture_held", "evaluate_score"}
FOR_DISPLAY = ("analysis_", "report_")


def test_only_the_stages_that_may_read_clean_twins_and_held_views_are_given_them(built):
    """Asked of the DAG itself: the inputs of every job of a whole build."""
    jobs = built.snakemake("--dry-run", "--forceall").stdout
    readers = {"clean": set(), "held": set()}
    for rule, inputs in re.findall(r"^(?:local)?rule (\w+):\n    input: (.*)$", jobs, re.M):
        for part, found in readers.items():
            if re.search(rf"references/{part}/[^/,]+(,|$)", inputs):
                found.add(rule)
    assert {"actions_veil", "evaluate_score"} <= readers["clean"], "the pattern above no longer finds anything"
    assert {rule for rule in readers["clean"] if not rule.startswith(FOR_DISPLAY)} <= MAY_READ_CLEAN
    assert {rule for rule in readers["held"] if not rule.startswith(FOR_DISPLAY)} <= MAY_READ_HELD


def test_the_scores_are_there_for_every_scene_and_variant(built):
    for scene in ("Kogarashi", "Hayate"):
        for variant in ("fujinsplat", "raw_base"):
            csv = built.folder / f"results/demo/metrics/{scene}/{variant}.csv"
            assert csv.read_text().count("\n") >= 3
            about = json.loads(csv.with_suffix(".json").read_text())
            training = built.config()["datasets"]["demo"]["settings"]["splat"]["iterations"]
            assert about["training"]["iteration"] == training, (
                "the log of the real training, not of the export after it"
            )
            assert about["training"]["seconds"] > 0 and about["training"]["memory_mb"] > 0
