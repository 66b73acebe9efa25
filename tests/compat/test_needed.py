"""Work-arounds for other libraries: the installed version is one they were tested with, and they are still needed.

A test that fails here after an upgrade says that a work-around can go, or has to be looked at again.
"""

import dataclasses
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

COMPAT = Path(__file__).parents[2] / "fujinsplat" / "compat"
MODULES = sorted(path.stem for path in COMPAT.glob("*.py") if path.stem != "__init__")


def in_a_fresh_process(script: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", MODULES)
def test_the_installed_version_is_one_it_was_tested_with(name):
    package, _, versions = import_module(f"fujinsplat.compat.{name}").VERSIONS.partition(" ")
    try:
        installed = version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    assert installed.split("+")[0] in SpecifierSet(versions), (
        f"try {name} with {package} {installed}, then say so there"
    )


def test_torchs_own_adam_still_imports_its_compiler():
    script = (
        "import sys, torch; torch.optim.Adam([torch.ones(1, requires_grad=True)])\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert in_a_fresh_process(script) == "True", "compat/optim.py can go"


@pytest.mark.parametrize("gelu", [False, True])
def test_a_dense_layer_is_the_same_with_and_without_onednn(monkeypatch, gelu):
    import torch

    from fujinsplat.compat import onednn

    rows, weight, bias = torch.rand(20, 12), torch.rand(8, 12) - 0.5, torch.rand(8)
    for bits in (torch.float32, torch.bfloat16):
        given = [tensor.to(bits) for tensor in (rows, weight, bias)]
        fast = onednn.linear(*given, gelu)
        with monkeypatch.context() as without:
            without.setattr(onednn, "_PRESENT", False)
            torch.testing.assert_close(fast, onednn.linear(*given, gelu))


def test_gsplats_strategy_still_has_no_cap():
    from gsplat.strategy import DefaultStrategy

    names = {field.name for field in dataclasses.fields(DefaultStrategy)}
    assert not names & {"cap_max", "max_gaussians", "limit"}, "compat/gsplat_strategy.py can go"
    parameters = list(inspect.signature(DefaultStrategy._grow_gs).parameters)
    assert parameters[:4] == ["self", "params", "optimizers", "state"]


@pytest.mark.parametrize("more", [(), ("info",)], ids=["gsplat 1.5", "gsplat 1.6"])
def test_the_cap_holds_whatever_else_gsplat_passes(monkeypatch, more):
    """1.6 has one more argument: what we do not know is passed on as it is."""
    import torch
    from gsplat.strategy import DefaultStrategy

    from fujinsplat.compat.gsplat_strategy import BoundedStrategy

    seen = []
    monkeypatch.setattr(
        DefaultStrategy, "_grow_gs", lambda self, *rest: seen.append((self.grow_grad2d, rest)) or (0, 0)
    )
    strategy = BoundedStrategy()
    strategy.limit = 12
    state = {"grad2d": torch.arange(10.0), "count": torch.ones(10)}
    strategy._grow_gs({"means": torch.zeros(10, 3)}, {}, state, 7, *more)
    threshold, rest = seen[0]
    assert int((state["grad2d"] > threshold).sum()) == 2 and rest[3:] == (7, *more)
    assert strategy.grow_grad2d == BoundedStrategy().grow_grad2d, "the threshold is put back"


def test_numba_still_stamps_a_kernel_by_its_own_file_alone():
    from numba.core.caching import _SourceFileBackedLocatorMixin

    source = inspect.getsource(_SourceFileBackedLocatorMixin.get_source_stamp)
    assert "st_mtime" in source, "numba looks at more than one file now: compat/numba_cache.py may go"


def test_snakemake_still_plans_once_a_second_for_its_rate_limit():
    from snakemake.scheduling import job_scheduler

    assert "job_rate_limiter" in inspect.getsource(job_scheduler), "compat/snakemake_rate.py can go"


def test_snakemake_still_has_no_defaults_for_log_and_benchmark():
    from snakemake.rules import Rule

    assert {"set_log", "benchmark", "conda_env"} <= set(dir(Rule))


def test_torchvision_still_needs_help_beside_a_cpu_torch():
    import torch

    if torch.version.cuda:
        pytest.skip("a CUDA build of torch: torchvision's library loads")
    script = (
        "import importlib.util as u\n"
        "try:\n    import torchvision; print(u.find_spec('torchvision') is None)\n"
        "except RuntimeError as error:\n    print('torchvision::nms' in str(error))"
    )
    assert in_a_fresh_process(script) == "True", "compat/torchvision.py can go"


def test_snakemake_still_wraps_what_input_functions_raise():
    """Without us: wildcards and a traceback around the sentence; with us: the sentence."""
    script = """
from types import SimpleNamespace
from snakemake.exceptions import InputFunctionException
from fujinsplat.core.errors import UserError
rule = SimpleNamespace(workflow=SimpleNamespace(linemaps={}), name="r", lineno=1, snakefile="s")
def told():
    try:
        raise UserError("one sentence")
    except UserError as error:
        return str(InputFunctionException(error, wildcards={"scene": "x"}, rule=rule))
before = told()
from fujinsplat.compat.snakemake_errors import say_user_errors_plainly
say_user_errors_plainly()
print("Traceback" in before, told())
"""
    assert in_a_fresh_process(script) == "True one sentence", "compat/snakemake_errors.py can go, or no longer works"
