"""Adam without torch's compiler.

Torch's own optimizers import `torch._dynamo` when they are made and at every step, so that compiled training loops can
step around them. Nothing here is compiled by torch, and that import alone takes longer than all the others of a short
job together. These classes run the same code without that outer layer: same states, same numbers.
"""

import inspect

import torch


def _undecorated(kind: type) -> dict:
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step)), "__doc__": kind.__doc__}


Adam = type("Adam", (torch.optim.Adam,), _undecorated(torch.optim.Adam))
AdamW = type("AdamW", (torch.optim.AdamW,), _undecorated(torch.optim.AdamW))
