"""Adam without torch's compiler, and the schedule of its rate. Tested with torch 2.6 to 2.13.

Torch's own optimizers import `torch._dynamo` when they are made and at every step, so that compiled training loops can
step around them. Nothing here is compiled by torch, and that import alone takes longer than all the others of a short
job together. These classes run the same code without that outer layer: same states, same numbers.
"""

import inspect
import math

import torch

VERSIONS = "torch >=2.6,<2.14"


def _undecorated(kind: type) -> dict:
    names = ("add_param_group", "zero_grad", "state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    load = inspect.unwrap(kind.load_state_dict)

    def load_state_dict(self, state_dict: dict) -> None:
        load(self, state_dict)
        count_steps_where_they_are_read(self)

    step = torch.no_grad()(inspect.unwrap(kind.step))
    return {**methods, "load_state_dict": load_state_dict, "step": step, "__doc__": kind.__doc__}


def count_steps_where_they_are_read(optimizer: torch.optim.Optimizer) -> None:
    """Step counters on the device their kernel wants: beside the parameter when it is fused, else on the CPU.

    A checkpoint that was read onto a GPU has them all there; the plain kernel would wait for the GPU at every step.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            if torch.is_tensor(state.get("step")):
                state["step"] = state["step"].to(parameter.device if group.get("fused") else "cpu")


Adam = type("Adam", (torch.optim.Adam,), _undecorated(torch.optim.Adam))
AdamW = type("AdamW", (torch.optim.AdamW,), _undecorated(torch.optim.AdamW))


def cosine(update: int, updates: int, final: float) -> float:
    """Learning-rate multiplier: 1 at the first update, `final` at the last."""
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * update / max(1, updates - 1)))
