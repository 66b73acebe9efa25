"""docs/paper-map.md is true: every label of the paper is there once, and every name in it exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LABELS = """
fig:teaser sec:intro sec:method sec:method_overview fig:method_pipeline eq:base_delta_overview sec:base_isp
eq:base_isp_fit sec:isp_controller sec:semantic_isp_delta fig:action_family sec:simulation_supervision
eq:controller_parameter_delta sec:joint_optimization eq:delta_isp eq:delta_developed_gs sec:experiments
fig:qualitative tab:main_results sec:experimental_setup sec:main_comparison sec:ablations tab:ntire_results
fig:ablation_render tab:capacity fig:capacity tab:ablation_modules sec:conclusion sec:suppl_rank_one
fig:suppl_rank_one eq:suppl_rank_one_factorization eq:suppl_rank_one_error eq:suppl_rank_one_model tab:suppl_rank_one
sec:suppl_base_isp tab:suppl_base_fidelity sec:suppl_mcf fig:suppl_mcf eq:suppl_mcf_increments eq:suppl_mcf_coupling
eq:suppl_mcf_inverse sec:suppl_observability fig:suppl_observability sec:suppl_action_family sec:suppl_synthesis
fig:suppl_synthesis eq:suppl_synth_curve eq:suppl_synth_coupling fig:suppl_ablation_render sec:suppl_implementation
tab:suppl_ablation_per_scene tab:suppl_training sec:suppl_protocol tab:suppl_supervision sec:suppl_per_scene
sec:suppl_baselines sec:suppl_limitations
""".split()


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "paper-map.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    assert all(len(row) == 8 for row in cells), [row[0] for row in cells if len(row) != 8]
    return cells


def names(column: int) -> list[str]:
    return sorted({name for row in rows() for name in re.findall(r"`([^`]+)`", row[column])})


def test_every_label_of_the_paper_is_mapped_once():
    assert sorted(row[0].strip("`") for row in rows()) == sorted(LABELS)


def test_every_row_names_code_a_rule_and_an_output():
    for row in rows():
        assert all("`" in row[column] for column in (2, 3, 4)), row[0]


STATES = ("exact", "ours instead: ", "not reproducible here: ")


def test_every_row_has_a_state_with_its_reason():
    for row in rows():
        assert row[7].startswith(STATES), f"{row[0]}: {row[7]}"
        for state in STATES[1:]:
            assert not row[7].endswith(state.strip()), f"{row[0]} gives no reason"


def test_named_rows_settings_and_tests_exist():
    import yaml

    from fujinsplat.rows.registries import AllSettings

    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    known = {*config["variants"], *config["groups"], *AllSettings.model_fields, "paper:"}
    for block in AllSettings.model_fields:
        known |= {f"{block}.{name}" for name in type(getattr(AllSettings(), block)).model_fields}
    assert not set(names(5)) - known
    for row in rows():
        tests = re.findall(r"`([^`]+)`", row[6])
        assert tests, f"{row[0]} has no test"
        for path in tests:
            assert (ROOT / path).is_file(), f"{row[0]}: {path} does not exist"


@pytest.mark.parametrize("name", names(2))
def test_code_exists(name):
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        return
    raise AssertionError(f"{name} does not exist")


def test_rules_exist(workflow_rules):
    assert not set(names(3)) - set(workflow_rules)


def test_outputs_are_written_by_a_rule(workflow_rules):
    """A path of the map is a rule's output pattern, or what that pattern becomes with its last wildcard filled in."""
    outputs = [path for rule in workflow_rules.values() for path in rule["output"]]
    patterns = [path.removeprefix("results/{dataset}/").replace("{version}", "") for path in outputs]
    for path in names(4):
        matches = [p for p in patterns if p == path or re.fullmatch(_regex(p), path)]
        assert matches, f"no rule writes {path}"


def _regex(pattern: str) -> str:
    return "".join(r"[\w.-]+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", pattern))
