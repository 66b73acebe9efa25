"""The Base ISP as a torch module: seven trainable tensors beside three fixed ones, 111,547 numbers to learn."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fujinsplat.isp import fused, reference
from fujinsplat.isp.reference import COARSE, CURVE_LIMIT, FINE, SEGMENTS, Operands

PARAMETERS = 111_547
ENCODINGS = ("srgb", "none")
# where calibration keeps the parameters after each update
EXPOSURE_LIMIT = 2 * math.log(2)  # two stops
BALANCE_LIMIT, GENERATOR_LIMIT = 1.0, 0.5
G9_LIMITS, R33_LIMIT = (-32.0, 16.0), 8.0


class BaseISP(nn.Module):
    """Camera-linear RAW without white balance `[..., 3]` in [0, 1] -> encoded camera RGB `[..., 3]`, not clamped.

    Buffers hold what the camera's metadata and the initial regression say, parameters what calibration adds; all
    parameters at zero leave the buffers' plain matrix development (with sRGB encoding, where that is the last module).

    `base_exposure` `[]` and `base_white_balance` `[3]` are natural logarithms, like `exposure` and `white_balance`.
    `base_matrix` `[3, 3]` is a row matrix: `out = in @ base_matrix` (a column-convention matrix, transposed).
    `encoding` is the last module: "none", the published one and every imported base's, where Tone257 itself ends
    encoded, or "srgb".

    On the CPU in float32 a fused kernel runs; elsewhere, and in float64, the reference. `forward_reference` always
    runs the reference.
    """

    base_exposure: Tensor
    base_white_balance: Tensor
    base_matrix: Tensor
    notes: dict[str, str]  # what its file says beside the tensors

    def __init__(
        self,
        base_exposure: float = 0.0,
        base_white_balance: Sequence[float] = (0.0, 0.0, 0.0),
        base_matrix: Sequence[Sequence[float]] | Tensor | None = None,
        encoding: str = "srgb",
    ):
        super().__init__()
        if encoding not in ENCODINGS:
            raise ValueError(f"encoding is {encoding!r}, not one of {ENCODINGS}")
        self.encoding = encoding
        self.notes = {}
        matrix = torch.eye(3) if base_matrix is None else torch.as_tensor(base_matrix, dtype=torch.float32)
        self.register_buffer("base_exposure", torch.tensor(float(base_exposure)))
        self.register_buffer("base_white_balance", torch.as_tensor(base_white_balance, dtype=torch.float32).clone())
        self.register_buffer("base_matrix", matrix.clone())
        self.exposure = nn.Parameter(torch.zeros(()))
        self.white_balance = nn.Parameter(torch.zeros(3))
        self.generator = nn.Parameter(torch.zeros(3, 3))
        self.shaper = nn.Parameter(torch.zeros(3, SEGMENTS))
        self.g9 = nn.Parameter(torch.zeros(COARSE, COARSE, COARSE, 3))
        self.r33 = nn.Parameter(torch.zeros(FINE, FINE, FINE, 3))
        self.tone = nn.Parameter(torch.zeros(3, SEGMENTS))
        count = sum(p.numel() for p in self.parameters())
        assert count == PARAMETERS, f"{count} parameters, not {PARAMETERS}"

    def front_parameters(self) -> list[nn.Parameter]:
        return [self.exposure, self.white_balance, self.generator]

    def curve_parameters(self) -> list[nn.Parameter]:
        return [self.shaper, self.tone]

    def lattice_parameters(self) -> list[nn.Parameter]:
        return [self.g9, self.r33]

    @torch.no_grad()
    def project(self) -> None:
        """Bring the parameters back into the published ranges, in place."""
        self.exposure.clamp_(-EXPOSURE_LIMIT, EXPOSURE_LIMIT)
        self.white_balance.sub_(self.white_balance.mean()).clamp_(-BALANCE_LIMIT, BALANCE_LIMIT)
        self.generator.clamp_(-GENERATOR_LIMIT, GENERATOR_LIMIT)
        for curve in self.curve_parameters():
            curve.clamp_(-CURVE_LIMIT, CURVE_LIMIT)
        self.g9.clamp_(*G9_LIMITS)
        self.r33.clamp_(-R33_LIMIT, R33_LIMIT)

    def front_matrix(self) -> Tensor:
        """Gains and colour matrix as one row matrix `[3, 3]`: `linear = raw @ front_matrix`."""
        return self._front_matrix(self.base_matrix.dtype)

    def _front_matrix(self, dtype: torch.dtype) -> Tensor:
        exposure, balance = self.base_exposure.to(dtype), self.base_white_balance.to(dtype)
        gains = reference.gains(exposure + self.exposure.to(dtype), balance + self.white_balance.to(dtype))
        return gains[:, None] * (self.base_matrix.to(dtype) @ torch.linalg.matrix_exp(self.generator.to(dtype)))

    def operands(self, dtype: torch.dtype | None = None) -> Operands:
        """Everything a pixel meets, differentiable in the parameters; made in `dtype`, not rounded to it afterwards."""
        dtype = dtype or self.base_matrix.dtype
        return Operands(
            self._front_matrix(dtype),
            reference.curve_deviation(self.shaper.to(dtype), 1.0),
            self.g9.to(dtype),
            self.r33.to(dtype),
            reference.curve_deviation(self.tone.to(dtype), 2 * reference.TONE_RANGE),
        )

    def stages(self, raw_linear: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(front output, lattice output, encoded RGB) of RAW `[..., 3]`: what the calibration objective looks at."""
        if fused.fits(raw_linear, self.base_matrix):
            return fused.stages(self.operands(), raw_linear, self.encoding)
        return self.stages_reference(raw_linear)

    def stages_reference(self, raw_linear: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return reference.pixels(self.operands(raw_linear.dtype), raw_linear, self.encoding)

    def forward(self, raw_linear: Tensor) -> Tensor:
        if fused.fits(raw_linear, self.base_matrix) and not torch.is_grad_enabled():
            return fused.encode(self.operands(), raw_linear, self.encoding)
        return self.stages(raw_linear)[2]

    def forward_reference(self, raw_linear: Tensor) -> Tensor:
        return self.stages_reference(raw_linear)[2]
