"""The Base ISP as a torch module: seven trainable tensors beside three fixed ones, 111,547 numbers to learn."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fujinsplat.isp import fused, reference
from fujinsplat.isp.reference import COARSE, FINE, SEGMENTS, Operands

PARAMETERS = 111_547
ENCODINGS = ("srgb", "none")


class BaseISP(nn.Module):
    """Camera-linear RAW without white balance `[..., 3]` in [0, 1] -> encoded camera RGB `[..., 3]`, not clamped.

    Buffers hold what the camera's metadata and the initial regression say, parameters what calibration adds; all
    parameters at zero leave the buffers' plain matrix development with sRGB encoding.

    `base_exposure` `[]` and `base_white_balance` `[3]` are natural logarithms, like `exposure` and `white_balance`.
    `base_matrix` `[3, 3]` is a row matrix: `out = in @ base_matrix` (a column-convention matrix, transposed).
    `encoding` is the last module: "srgb", or "none" for an imported base whose tone curve already ends encoded.

    On the CPU in float32 a fused kernel runs; elsewhere, and in float64, the reference. `forward_reference` always
    runs the reference.
    """

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

    def front_matrix(self) -> Tensor:
        """Gains and colour matrix as one row matrix `[3, 3]`: `linear = raw @ front_matrix`."""
        gains = reference.gains(self.base_exposure + self.exposure, self.base_white_balance + self.white_balance)
        return gains[:, None] * (self.base_matrix @ torch.linalg.matrix_exp(self.generator))

    def operands(self, dtype: torch.dtype | None = None) -> Operands:
        """Everything a pixel meets, differentiable in the parameters."""
        made = Operands(
            self.front_matrix(),
            reference.curve_deviation(self.shaper, 1.0),
            reference.lattice_nodes(self.g9, self.r33),
            reference.curve_deviation(self.tone, 2 * reference.TONE_RANGE),
        )
        return made if dtype is None else Operands(*(t.to(dtype) for t in made))

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
