"""Putting a room together: materials, primitives, places, palettes.

World axes: x right, y into the room, z up, metres. An object's front is its -y side.
"""

import colorsys
import math
from dataclasses import dataclass

import numpy as np

from fujinsplat.demo import geometry, materials


def linear(hue: float, saturation: float, value: float) -> tuple[float, float, float]:
    """A colour chosen as people choose it (hue, saturation, value of the encoded picture) as linear albedo."""
    rgb = colorsys.hsv_to_rgb(hue % 1.0, min(max(saturation, 0.0), 1.0), min(max(value, 0.0), 1.0))
    return tuple(0.03 + 0.82 * c**2.2 for c in rgb)


@dataclass(frozen=True)
class Place:
    """A position on the floor plan with a heading; `at` goes to a point given in the object's own axes."""

    x: float
    y: float
    z: float = 0.0
    yaw: float = 0.0

    def at(self, dx: float = 0.0, dy: float = 0.0, dz: float = 0.0, turn: float = 0.0) -> "Place":
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return Place(self.x + c * dx - s * dy, self.y + s * dx + c * dy, self.z + dz, self.yaw + turn)


@dataclass(frozen=True)
class Spot:
    """A free horizontal surface: its middle, half width, half depth, and the room above it."""

    place: Place
    half_width: float
    half_depth: float
    height: float = 0.6


class Palette:
    """A scene's colours: a few hues that return everywhere, and what its wood and walls are like."""

    def __init__(self, rng: np.random.Generator, hue: float | None = None, saturation: float = 0.55):
        self.rng = rng
        self.hue = rng.uniform() if hue is None else hue
        self.saturation = saturation
        spread = rng.uniform(0.25, 0.45)
        self.hues = [self.hue, self.hue + 0.5, self.hue + spread, self.hue - spread, 0.06]
        tone = rng.uniform(0.035, 0.1)
        value = rng.uniform(0.35, 0.8)
        self.wood_light = linear(tone, rng.uniform(0.22, 0.48), value)
        self.wood_dark = linear(tone - 0.01, rng.uniform(0.35, 0.6), 0.6 * value)

    def accent(self) -> tuple[float, float, float]:
        """A strong colour."""
        rng = self.rng
        hue = self.hues[int(rng.integers(len(self.hues)))] + rng.normal(0, 0.03)
        return linear(hue, rng.uniform(0.4, 0.9) * (0.45 + self.saturation), rng.uniform(0.3, 0.88))

    def muted(self, low: float = 0.35, high: float = 0.8) -> tuple[float, float, float]:
        """A quiet colour."""
        rng = self.rng
        hue = self.hues[int(rng.integers(3))] + rng.normal(0, 0.03)
        return linear(hue, rng.uniform(0.04, 0.3) * (0.4 + self.saturation), rng.uniform(low, high))

    def pale(self) -> tuple[float, float, float]:
        rng = self.rng
        return linear(self.hue + rng.normal(0, 0.1), rng.uniform(0.02, 0.16), rng.uniform(0.78, 0.95))

    def dark(self) -> tuple[float, float, float]:
        rng = self.rng
        return linear(self.hue + rng.normal(0, 0.1), rng.uniform(0.1, 0.5), rng.uniform(0.08, 0.28))


class Room:
    """Collects primitives and materials. The first primitive is the room's own box."""

    def __init__(self, rng: np.random.Generator, palette: Palette):
        self.rng = rng
        self.palette = palette
        self._prims: list[np.ndarray] = []
        self._materials: list[np.ndarray] = []

    # materials

    def material(self, kind: str, *colours, **numbers) -> int:
        numbers.setdefault("seed", int(self.rng.integers(1, 1 << 20)))
        self._materials.append(materials.row(kind, *colours, **numbers))
        return len(self._materials) - 1

    def wooden(self, scale: float = 0.06, gloss: float = 0.35) -> int:
        p = self.palette
        return self.material("wood", p.wood_light, p.wood_dark, scale=scale, gloss=gloss)

    def cloth(self) -> int:
        """Any woven or knitted thing."""
        p = self.palette
        kind = ("plaid", "stripes", "dots", "tufts", "tufts")[int(self.rng.integers(5))]
        scale = {"plaid": 0.12, "stripes": 0.09, "dots": 0.06, "tufts": 0.012}[kind] * self.rng.uniform(0.7, 1.5)
        ground = p.accent() if self.rng.uniform() < 0.3 else p.muted(0.25, 0.8)
        return self.material(kind, ground, p.muted(), p.accent(), scale=scale)

    def glaze(self) -> int:
        """Glazed, lacquered or painted: plain but glossy."""
        p = self.palette
        pick = self.rng.uniform()
        if pick < 0.5:
            return self.material("paint", p.accent(), p.dark(), gloss=1.0, shininess=80.0, variation=0.06)
        if pick < 0.7:
            return self.material("stone", p.pale(), p.accent(), scale=0.07, gloss=0.8, shininess=60.0)
        if pick < 0.85:
            return self.material("stripes", p.pale(), p.accent(), p.accent(), scale=0.05, gloss=0.8, shininess=60.0)
        return self.material("metal", p.muted(), p.dark(), gloss=1.5, shininess=40.0, variation=0.3)

    # primitives

    def _add(self, shape: int, place: Place, half, material: int, tilt=0.0, roll=0.0, taper=1.0) -> None:
        cy, sy = math.cos(place.yaw), math.sin(place.yaw)
        ct, st = math.cos(tilt), math.sin(tilt)
        cr, sr = math.cos(roll), math.sin(roll)
        yaw = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        pitch = np.array([[1, 0, 0], [0, ct, -st], [0, st, ct]])  # about the object's x: leans back when negative
        bank = np.array([[cr, 0, sr], [0, 1, 0], [-sr, 0, cr]])
        rotation = (yaw @ pitch @ bank).T
        row = np.zeros(geometry.WIDTH)
        row[:3] = place.x, place.y, place.z
        row[3:12] = rotation.ravel()
        row[12:15] = half
        row[15:18] = taper, shape, material
        self._prims.append(row)

    def box(self, place: Place, half, material: int, tilt: float = 0.0, roll: float = 0.0) -> None:
        """Centre and half sizes."""
        self._add(geometry.BOX, place, half, material, tilt, roll)

    def block(self, place: Place, half, material: int, **turn) -> None:
        """Like `box`, but `place` is the middle of its underside."""
        self.box(place.at(dz=half[2]), half, material, **turn)

    def blob(self, place: Place, half, material: int, tilt: float = 0.0, roll: float = 0.0) -> None:
        """An ellipsoid about its centre."""
        self._add(geometry.ELLIPSOID, place, half, material, tilt, roll)

    def post(self, place: Place, radius, height: float, material: int, taper=1.0, tilt=0.0, roll=0.0) -> None:
        """A cylinder or cone standing on `place`; `taper` is the top radius over the bottom one."""
        rx, ry = radius if isinstance(radius, tuple) else (radius, radius)
        self._add(geometry.CYLINDER, place.at(dz=height / 2), (rx, ry, height / 2), material, tilt, roll, taper)

    def bar(self, place: Place, radius, length: float, material: int, tilt=0.0, roll=0.0, taper=1.0) -> None:
        """Like `post`, about its middle: `roll` of a quarter turn lays it along x, `tilt` along y."""
        self.post(place.at(dz=-length / 2), radius, length, material, taper, tilt, roll)

    def shell(self, low, high, faces: list[int]) -> None:
        """The room's own box, with the materials of its -x +x -y +y -z +z faces; must come first."""
        assert not self._prims, "the room's box must be the first primitive"
        start = len(self._materials)
        self._materials.extend(self._materials[f] for f in faces)
        low, high = np.asarray(low, float), np.asarray(high, float)
        middle = 0.5 * (low + high)
        self._add(geometry.BOX, Place(*middle), 0.5 * (high - low), start)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.stack(self._prims), np.stack(self._materials)
