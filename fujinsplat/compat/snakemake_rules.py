"""What every rule has, in one place: log, benchmark, environment, a GPU count. Tested with snakemake 9.15 to 9.27.

Snakemake has no defaults for these; each rule would repeat them. Here they are filled in on the rules' objects after
the rule files are read, where a rule names none itself.
"""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSIONS = "snakemake >=9.15,<9.28"
LONGEST = 254  # characters of a record's file name, one less than a file's name may have


def fill_in(workflow, log: str, benchmark: str, conda: str, params: Callable[[Any], dict[str, Any]]) -> None:
    """Give every rule that runs something a log, a benchmark, an environment and the parameters `params(rule)`.

    `{job}` in the patterns is replaced by a name made of the rule's, `stage_action`, and its wildcards.
    """
    for rule in workflow.rules:
        if rule.norun or not rule.output:
            continue
        stage, _, action = rule.name.partition("_")
        names = [name for name in sorted(rule.wildcard_names) if name not in ("dataset", "version")]
        version = "{version}" if "version" in rule.wildcard_names else ""  # empty, or ends in a slash
        job = "/".join([stage, action, version + (".".join(f"{{{name}}}" for name in names) or "all")])
        rule.log_modifier = rule.benchmark_modifier = rule.output_modifier
        if not rule.log:
            rule.set_log(log.replace("{job}", job))
        if not rule.benchmark:
            rule.benchmark = benchmark.replace("{job}", job)
        if rule.conda_env is None:
            rule.conda_env = conda
        rule.resources.setdefault("gpu", 0)
        rule.set_params(**params(rule))
        _ask_for_cards(rule.resources)


def _ask_for_cards(resources) -> None:
    """`gpu_model` and `gpu_constraint` of a profile are meant for the rules that ask for a GPU, and for no other."""
    wanted = resources["gpu"].raw
    asks = callable(wanted) or wanted not in (0, "0", None)
    if "gpu_model" in resources and not asks:
        resources["gpu_model"] = None
    if "gpu_constraint" in resources:
        if asks:
            resources["constraint"] = resources["gpu_constraint"].raw
        resources["gpu_constraint"] = None


def bound(workflow, resource: str, amount: int) -> None:
    """At most `amount` of a resource at work at once, unless the command line or profile says how much there is.

    A profile holds constants only; how many GPUs a machine has is found when the workflow is read.
    """
    if amount and resource not in workflow.global_resources:
        workflow.register_resource(resource, amount)


def recorded_params(outputs: list[str]) -> list[str]:
    """The parameters that the first of these outputs was made with, as Snakemake's own records have them."""
    for output in outputs:
        key = base64.b64encode(output.encode(), altchars=b"-_").decode()
        # a long name is split into folders, each but the last marked with @
        pieces = [key[i : i + LONGEST] for i in range(0, len(key), LONGEST)]
        path = Path(".snakemake/metadata", *(f"@{piece}" for piece in pieces[:-1]), pieces[-1])
        try:
            params = json.loads(path.read_text())["params"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return [str(word).strip("'\"") for word in params or []]
    return []


def ignore_changed_rules() -> None:
    """A changed text of a rule is no reason to run it again, as with `--rerun-triggers` without `code`."""
    from snakemake.persistence import PersistenceBase

    PersistenceBase._code_changed = lambda self, job, file=None: False
