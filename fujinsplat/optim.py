"""Adam without torch's compiler, and the schedule of its rate.

Torch's own optimizers import `torch._dynamo` when they are made and at every step, so that compiled training loops can
step around them. Nothing here is compiled by torch, and that import alone takes longer than all the others of a short
job together. These classes run the same code without that outer layer: same states, same numbers.
"""

import inspect
import math

import torch


def _undecorated(kind: type) -> dict:
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step)), "__doc__": kind.__doc__}


Adam = type("Adam", (torch.optim.Adam,), _undecorated(torch.optim.Adam))
AdamW = type("AdamW", (torch.optim.AdamW,), _undecorated(torch.optim.AdamW))


def cosine(update: int, updates: int, final: float) -> float:
    """Learning-rate multiplier: 1 at the first update, `final` at the last."""
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * update / max(1, updates - 1)))
