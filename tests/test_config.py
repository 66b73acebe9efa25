"""Settings: one place, one schema, and mistakes that explain themselves."""

from pathlib import Path

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import IspSettings, SplatSettings
from fujinsplat.core.validation import checked, dump_differences, stage_settings
from fujinsplat.rows.config import Config, schema
from fujinsplat.rows.registries import AllSettings

ROOT = Path(__file__).parents[1]


@pytest.fixture
def config() -> dict:
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def test_the_committed_config_is_valid_and_the_schema_accepts_it(config):
    import json

    import jsonschema

    checked(Config, config)
    jsonschema.validate(config, json.loads(schema()))


def test_the_committed_schema_has_not_drifted():
    assert (ROOT / "fujinsplat/config.schema.json").read_text() == schema(), "run `make schema`"


def test_every_setting_says_what_it_means():
    for stage, field in AllSettings.model_fields.items():
        for name, setting in field.annotation.model_fields.items():
            assert setting.description, f"{stage}.{name} has no meaning"


def test_global_settings_hold_nothing_that_equals_the_paper(config):
    """config.yaml holds only what differs from the paper's values."""
    for dataset, block in config["datasets"].items():
        for stage, values in block.get("settings", {}).items():
            model = AllSettings.model_fields[stage].annotation
            for name, value in values.items():
                assert model.model_fields[name].default != value, f"datasets.{dataset}.settings.{stage}.{name}"


@pytest.mark.parametrize(
    "change, expected",
    [
        ({"settings": {"isp": {"joint_step": 4}}}, ["settings.isp.joint_step", "joint_steps"]),
        ({"settings": {"ips": {}}}, ["settings.ips", "isp"]),
        ({"settings": {"splat": {"iterations": -3}}}, ["settings.splat.iterations", "greater than or equal to 1"]),
        ({"settings": {"splat": {"iterations": "many"}}}, ["settings.splat.iterations", "integer"]),
        ({"settings": {"splat": {"densify_from": 7000}}}, ["settings.splat", "densify_from", "densify_until"]),
        ({"settings": {"delta": {"after": 17000}}}, ["settings.delta", "after", "until"]),
        ({"settings": {"synthesis": {"labels": "guess"}}}, ["settings.synthesis.labels", "fitted"]),
        ({"dataset": "demoo"}, ["dataset", "demoo", "demo"]),
        ({"build": "mian"}, ["build", "main"]),
        ({"groups": {"mine": ["fujinspalt"]}}, ["groups.mine", "fujinsplat"]),
        ({"scenes": ["Kogarasi"]}, ["scenes", "Kogarashi"]),
        ({"variants": {"x": {"knots": 8}}}, ["variants.x.knots"]),
        ({"variants": {"x": {"front": "bse"}}}, ["variants.x.front", "did you mean 'base'"]),
        ({"variants": {"x": {"front": "camera", "reconcile": "delta"}}}, ["variants.x", "needs an action per view"]),
    ],
)
def test_a_mistake_names_the_key_and_the_remedy(config, change, expected):
    for key, value in change.items():
        if key == "variants":
            config[key].update(value)
        else:
            config[key] = value
    with pytest.raises(UserError) as error:
        checked(Config, config)
    for words in expected:
        assert words in str(error.value)


def test_a_datasets_overlay_is_checked_like_the_settings_themselves(config):
    config["datasets"]["demo"]["settings"]["splat"] = {"iteration": 5}
    with pytest.raises(UserError, match=r"datasets\.demo\.settings\.splat\.iteration .*'iterations'"):
        checked(Config, config)


@pytest.mark.parametrize("place", ["/", "data", "results"])
def test_the_demos_captures_lie_where_its_rule_makes_them(config, place):
    config["datasets"]["demo"]["external"] = place
    with pytest.raises(UserError, match=f"datasets.demo.external is {place}; .* at data/demo/external"):
        checked(Config, config)


def test_an_overlay_changes_its_dataset_only(config):
    config["settings"] = {"splat": {"lambda_dssim": 0.3}}
    built = checked(Config, config)
    assert built.settings_for("demo").splat.lambda_dssim == 0.3
    assert built.settings_for("demo").splat.iterations != built.settings_for("realx3d").splat.iterations
    assert built.settings_for("realx3d").splat.iterations == SplatSettings().iterations


def test_commands_take_differences_inline_or_from_a_file(tmp_path):
    assert dump_differences(IspSettings()) == "{}"
    changed = IspSettings(joint_steps=3)
    assert stage_settings(IspSettings, dump_differences(changed)) == changed
    (tmp_path / "isp.yaml").write_text("joint_steps: 3\n")
    assert stage_settings(IspSettings, str(tmp_path / "isp.yaml")) == changed
    with pytest.raises(UserError, match="existing YAML file"):
        stage_settings(IspSettings, str(tmp_path / "absent.yaml"))
    with pytest.raises(UserError, match="not valid YAML"):
        stage_settings(IspSettings, "{joint_steps: [")


def test_a_config_that_is_no_text_is_one_sentence(tmp_path):
    """For Snakemake, which would show where in its own code that happened, and for `config check`."""
    from snakemake.exceptions import WorkflowError

    from fujinsplat.compat.snakemake_errors import check_text

    path = tmp_path / "config.yaml"
    path.write_bytes("scenes: [Föhn]".encode("latin-1"))
    with pytest.raises(WorkflowError, match=r"config\.yaml is no UTF-8 text \(byte 10\); save it as UTF-8"):
        check_text(str(path))
    with pytest.raises(UserError, match=r"config\.yaml is no text .*; give inline JSON or a YAML file"):
        stage_settings(Config, str(path))
    check_text(str(tmp_path / "absent.yaml"))
