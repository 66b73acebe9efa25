"""Smoke: extinction that varies in space and over time, integrated along every ray in linear light.

The smoke hangs thickest between the cameras and the room, as it does near a smoke machine; what lies further back is
thinner. Its light is the room's own light, scattered: one colour per scene, brighter where the room is brighter.
"""

import math
from dataclasses import dataclass

import numpy as np

from fujinsplat.demo.jit import kernel
from fujinsplat.demo.render import Camera, World

STEPS = 14
# droplets scatter short waves a little more
SPECTRUM = np.array([0.985, 1.0, 1.02])


@dataclass(frozen=True)
class Air:
    """What fills the room at one moment: `density [nx, ny, nz]` per metre, `light` likewise (about 1), `colour [3]`."""

    low: np.ndarray
    step: np.ndarray
    density: np.ndarray
    light: np.ndarray
    colour: np.ndarray

    def scaled(self, factor: float) -> "Air":
        return Air(self.low, self.step, self.density * factor, self.light, self.colour)


@kernel
def _along(low, step, density, light, pose, rotation, focal, size, ss, pad, depth, block):
    """Grey optical depth and scattered light (of unit colour) up to each sample's surface, `[h, w]` each.

    Samples of a `block` x `block` square share one march to their furthest surface.
    """
    h, w = depth.shape
    tau = np.empty((h, w), np.float32)
    glow = np.empty((h, w), np.float32)
    t_at = np.empty(STEPS + 1)
    g_at = np.empty(STEPS + 1)
    nx, ny, nz = density.shape
    for row in range(0, h, block):
        for column in range(0, w, block):
            bottom = min(row + block, h)
            right = min(column + block, w)
            far = 0.0
            for i in range(row, bottom):
                for j in range(column, right):
                    far = max(far, depth[i, j])
            a = ((0.5 * (column + right) - pad) / ss - 0.5 * size[0]) / focal
            c = ((0.5 * (row + bottom) - pad) / ss - 0.5 * size[1]) / focal
            dx = rotation[0, 0] * a + rotation[0, 1] * c + rotation[0, 2]
            dy = rotation[1, 0] * a + rotation[1, 1] * c + rotation[1, 2]
            dz = rotation[2, 0] * a + rotation[2, 1] * c + rotation[2, 2]
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            ds = far / STEPS
            t_at[0] = 0.0
            g_at[0] = 0.0
            through = 1.0
            for k in range(STEPS):
                s = (k + 0.5) * ds
                gx = min(max((pose[0] + s * dx - low[0]) / step[0], 0.0), nx - 1.001)
                gy = min(max((pose[1] + s * dy - low[1]) / step[1], 0.0), ny - 1.001)
                gz = min(max((pose[2] + s * dz - low[2]) / step[2], 0.0), nz - 1.001)
                i, j, m = int(gx), int(gy), int(gz)
                fx, fy, fz = gx - i, gy - j, gz - m
                d = l = 0.0
                for q in range(8):
                    a0, a1, a2 = q & 1, (q >> 1) & 1, q >> 2
                    wt = (fx if a0 else 1.0 - fx) * (fy if a1 else 1.0 - fy) * (fz if a2 else 1.0 - fz)
                    d += wt * density[i + a0, j + a1, m + a2]
                    l += wt * light[i + a0, j + a1, m + a2]
                t_at[k + 1] = t_at[k] + d * ds * length
                after = math.exp(-t_at[k + 1])
                g_at[k + 1] = g_at[k] + l * (through - after)
                through = after
            for i in range(row, bottom):
                for j in range(column, right):
                    x = depth[i, j] / ds
                    k = min(int(x), STEPS - 1)
                    f = x - k
                    tau[i, j] = t_at[k] * (1.0 - f) + t_at[k + 1] * f
                    glow[i, j] = g_at[k] * (1.0 - f) + g_at[k + 1] * f
    return tau, glow


def through(
    air: Air, camera: Camera, camera_linear: np.ndarray, depth: np.ndarray, samples: float, pad: int
) -> np.ndarray:
    """What the camera receives: surface light `camera_linear [h, w, 3]` dimmed, scattered light added."""
    size = np.array([camera.width, camera.height], np.float64)
    block = 2 if samples > 1 else 1
    tau, glow = _along(
        air.low, air.step, air.density, air.light, camera.position, camera.rotation, float(camera.focal),
        size, float(samples), pad, depth, block,
    )  # fmt: skip
    scattered = glow / np.maximum(-np.expm1(-tau), 1e-9)
    out = np.empty_like(camera_linear)
    for channel, k in enumerate(SPECTRUM.astype(np.float32)):
        t = np.exp(-k * tau)
        out[..., channel] = t * camera_linear[..., channel] + (1 - t) * scattered * np.float32(air.colour[channel])
    return out


class Drift:
    """The smoke of one capture session: a shape that changes slowly as the cameras go round."""

    def __init__(self, world: World, rng: np.random.Generator, front: float, back: float, swirl: float = 0.45):
        """`front` and `back` weigh the bank before the cameras against the haze behind it."""
        self.world = world
        nodes = tuple(max(6, round(n)) for n in (world.high - world.low) / 0.3)
        self.low = world.low
        self.step = (world.high - world.low) / (np.array(nodes) - 1)
        axes = [self.low[k] + self.step[k] * np.arange(nodes[k]) for k in range(3)]
        x, y, z = np.meshgrid(*axes, indexing="ij")
        bank = np.exp(-(((y + 1.45) / 0.55) ** 2)) * (1 + 0.15 * np.cos(x))
        self.shape = front * bank + back * (1.15 - 0.12 * z)
        self.swirls = [_smooth(rng, nodes) for _ in range(3)]
        self.swirl = swirl
        fluence = world.grid.sum(-1).mean(-1) * (world.weight > 0.5)
        valid = (world.weight > 0.5).astype(float)
        level = _resample(_blur(fluence), nodes) / np.maximum(_resample(_blur(valid), nodes), 1e-6)
        self.light = 1 + 0.3 * np.clip(level / np.median(level) - 1, -0.8, 1.0)

    def at(self, time: float, colour: np.ndarray) -> Air:
        """The air at `time` in [0, 1], at unit density."""
        phase = 2 * math.pi * time
        a, b, c = self.swirls
        pattern = math.cos(phase) * a + math.sin(phase) * b + 0.7 * math.cos(2.3 * phase + 1.0) * c
        density = self.shape * np.exp(self.swirl * pattern)
        return Air(self.low, self.step, density, self.light, np.asarray(colour, float))


def _smooth(rng: np.random.Generator, nodes: tuple[int, ...]) -> np.ndarray:
    """Noise with features of about a metre, unit deviation."""
    coarse = rng.normal(size=tuple(max(3, n // 3 + 1) for n in nodes))
    field = _resample(coarse, nodes)
    return field / field.std()


def _resample(field: np.ndarray, nodes: tuple[int, ...]) -> np.ndarray:
    """Smoothly onto another number of nodes over the same extent, one axis after the other."""
    for axis, count in enumerate(nodes):
        have = field.shape[axis]
        at = np.linspace(0, have - 1, count)
        i = np.minimum(at.astype(int), have - 2)
        f = at - i
        f = (f * f * (3 - 2 * f)).reshape([-1 if k == axis else 1 for k in range(3)])
        field = np.take(field, i, axis) * (1 - f) + np.take(field, i + 1, axis) * f
    return field


def _blur(field: np.ndarray) -> np.ndarray:
    for axis in range(3):
        for _ in range(2):
            padded = np.pad(field, [(1, 1) if k == axis else (0, 0) for k in range(3)], mode="edge")
            n = field.shape[axis]
            parts = (w * np.take(padded, np.arange(k, k + n), axis) for k, w in enumerate((0.25, 0.5, 0.25)))
            field = np.asarray(sum(parts))
    return field
