"""Hashed value noise in one, two and three dimensions: the grain of every surface of the demo world.

Everything is a pure function of position and an integer seed, so a surface looks the same from every view and on any
number of threads. `fw` is the footprint of a picture sample in the same units as the coordinates: detail finer than it
fades to its mean instead of aliasing.
"""

import math

from fujinsplat.demo.jit import kernel

MASK = 0xFFFFFFFF


@kernel
def hash01(i, j, seed):
    """A number in [0, 1) from two integers and a seed."""
    h = ((i * 73856093) ^ (j * 19349663) ^ (seed * 83492791)) & MASK
    h = (((h >> 16) ^ h) * 0x45D9F3B) & MASK
    h = (((h >> 16) ^ h) * 0x45D9F3B) & MASK
    return ((h >> 16) ^ h) / 4294967296.0


@kernel
def value2(x, y, seed):
    """Smooth noise in [-1, 1] with features of size one."""
    fx = math.floor(x)
    fy = math.floor(y)
    i = int(fx)
    j = int(fy)
    u = x - fx
    v = y - fy
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    low = hash01(i, j, seed) * (1.0 - u) + hash01(i + 1, j, seed) * u
    high = hash01(i, j + 1, seed) * (1.0 - u) + hash01(i + 1, j + 1, seed) * u
    return 2.0 * (low * (1.0 - v) + high * v) - 1.0


@kernel
def value3(x, y, z, seed):
    """Smooth noise in [-1, 1] of three coordinates."""
    fz = math.floor(z)
    k = int(fz)
    w = z - fz
    w = w * w * (3.0 - 2.0 * w)
    return value2(x, y, seed + 7919 * k) * (1.0 - w) + value2(x, y, seed + 7919 * (k + 1)) * w


@kernel
def visible(fw, size):
    """How much of a pattern of this size a sample of footprint `fw` still resolves: 1 far below it, 0 above."""
    return min(max((size - fw) / (0.6 * size), 0.0), 1.0)


@kernel
def fbm2(x, y, seed, fw, octaves):
    """Octaves of `value2`, about [-1, 1]; those finer than the footprint are left out."""
    total = 0.0
    gain = 0.55
    for octave in range(octaves):
        size = 0.5**octave
        keep = visible(fw, size)
        if keep <= 0.0:
            break
        total += gain * keep * value2(x / size, y / size, seed + octave)
        gain *= 0.55
    return total


@kernel
def fbm3(x, y, z, seed, fw, octaves):
    """Octaves of `value3`, about [-1, 1]."""
    total = 0.0
    gain = 0.55
    for octave in range(octaves):
        size = 0.5**octave
        keep = visible(fw, size)
        if keep <= 0.0:
            break
        total += gain * keep * value3(x / size, y / size, z / size, seed + octave)
        gain *= 0.55
    return total


@kernel
def band(x, low, high, fw):
    """1 between `low` and `high`, 0 outside, with edges as soft as the footprint."""
    soft = max(fw, 1e-6)
    rise = min(max((x - low) / soft + 0.5, 0.0), 1.0)
    fall = min(max((high - x) / soft + 0.5, 0.0), 1.0)
    return rise * fall


@kernel
def step(x, edge, fw):
    """0 below `edge`, 1 above, with an edge as soft as the footprint."""
    return min(max((x - edge) / max(fw, 1e-6) + 0.5, 0.0), 1.0)
