"""The external family of rooms: workshops, halls, kitchens and store rooms, unlike the demo scenes.

Other proportions, other surfaces, other palettes and lights, furniture scattered over the whole floor. The synthesis
stage learns from these, so they must vary in content, colour, depth and brightness more than any one scene does.
"""

import math

import numpy as np

from fujinsplat.demo import furniture as f
from fujinsplat.demo import ornaments as o
from fujinsplat.demo.builder import Palette, Place, Room
from fujinsplat.demo.render import Camera, World, look, prepare

SURFACES = ("paint", "stone", "tiles", "metal", "terrazzo", "planks", "stripes", "tufts", "bricks")
SCALES = {"stone": 0.5, "tiles": 0.2, "terrazzo": 0.06, "planks": 0.12, "stripes": 0.4, "tufts": 0.03, "bricks": 0.12}


def _surface(room: Room) -> int:
    rng, p = room.rng, room.palette
    kind = SURFACES[int(rng.integers(len(SURFACES)))]
    colours = (p.muted(0.3, 0.9), p.muted(0.2, 0.9), p.muted(0.2, 0.6))
    return room.material(
        kind,
        *colours,
        scale=SCALES.get(kind, 0.1) * rng.uniform(0.7, 1.6),
        gloss=rng.uniform(0, 0.6),
        variation=rng.uniform(0.05, 0.9),
    )


def _heap(room: Room, place: Place) -> None:
    """Blocks, drums and balls piled up: shapes the demo scenes do not have."""
    rng = room.rng
    for _ in range(int(rng.integers(4, 10))):
        spot = place.at(rng.normal(0, 0.3), rng.normal(0, 0.3), 0.0, rng.uniform(0, 6.28))
        skin = _surface(room) if rng.uniform() < 0.5 else room.glaze()
        size = rng.uniform(0.06, 0.25)
        pick = rng.uniform()
        if pick < 0.35:
            room.block(spot, (size, size * rng.uniform(0.5, 1.2), size * rng.uniform(0.5, 2.0)), skin)
        elif pick < 0.7:
            room.post(spot, size * 0.8, size * rng.uniform(1.0, 4.0), skin, taper=rng.uniform(0.3, 1.2))
        else:
            room.blob(spot.at(dz=size * 0.8), (size, size * rng.uniform(0.6, 1.2), size * 0.8), skin)


def _rack(room: Room, place: Place) -> None:
    """A store-room rack: metal posts and decks with cartons, bottles and drums."""
    rng, p = room.rng, room.palette
    iron = room.material("metal", p.muted(0.3, 0.7), (0.25, 0.1, 0.04), gloss=0.8, variation=0.8)
    width, depth = rng.uniform(0.5, 0.9), 0.25
    for sx in (-1, 1):
        for sy in (-1, 1):
            room.block(place.at(sx * width, sy * depth), (0.02, 0.02, 0.95), iron)
    for level in range(4):
        deck = place.at(dz=0.15 + 0.5 * level)
        room.box(deck, (width, depth, 0.012), iron)
        x = -width + 0.15
        while x < width - 0.15:
            size = rng.uniform(0.08, 0.16)
            spot = deck.at(x + size, rng.normal(0, 0.03), 0.014, rng.normal(0, 0.1))
            if rng.uniform() < 0.6:
                o.carton(room, spot, size)
            else:
                room.post(spot, size, rng.uniform(0.15, 0.35), _surface(room))
            x += 2.4 * size + 0.04


def _columns(room: Room, half: np.ndarray) -> None:
    rng = room.rng
    skin = _surface(room)
    for k in range(int(rng.integers(2, 5))):
        spot = Place(rng.uniform(-0.8, 0.8) * half[0], (k - 1.5) * 0.5 * half[1])
        room.post(spot, rng.uniform(0.08, 0.16), 2 * half[2], skin, taper=0.85)


PIECES = (
    lambda room, place: o.clutter(room, f.table(room, place, 0.6, 0.35, 0.75), 7),
    lambda room, place: o.clutter(room, f.round_table(room, place), 5),
    lambda room, place: f.shelf(room, place, 0.45, 1.6, 4),
    lambda room, place: o.clutter(room, f.sideboard(room, place), 5),
    lambda room, place: f.sofa(room, place),
    lambda room, place: f.crates(room, place, 4),
    lambda room, place: o.plant(room, place, 1.4, 34),
    lambda room, place: f.chair(room, place),
    lambda room, place: o.basket(room, place, 0.22),
    _heap,
    _heap,
    _rack,
    _rack,
)


def other_room(rng: np.random.Generator) -> tuple[World, np.ndarray, np.ndarray]:
    """A room with its low and high corners."""
    palette = Palette(rng, saturation=rng.uniform(0.1, 0.9))
    room = Room(rng, palette)
    half = np.array([rng.uniform(1.6, 3.8), rng.uniform(2.0, 4.5), rng.uniform(1.2, 1.9)])
    low, high = np.array([-half[0], -half[1], 0.0]), np.array([half[0], half[1], 2 * half[2]])
    room.shell(low, high, [_surface(room) for _ in range(6)])
    if rng.uniform() < 0.35:
        _columns(room, half)
    for _ in range(int(3 + half[0] * half[1] * rng.uniform(0.5, 1.1))):
        piece = PIECES[int(rng.integers(len(PIECES)))]
        x, y = rng.uniform(-0.85, 0.85) * half[0], rng.uniform(-0.85, 0.85) * half[1]
        piece(room, Place(x, y, 0.0, rng.uniform(-math.pi, math.pi)))
    for wall in range(4):
        turn = (0.0, math.pi / 2, math.pi, -math.pi / 2)[wall]
        reach = half[1] if wall % 2 == 0 else half[0]
        along = half[0] if wall % 2 == 0 else half[1]
        middle = Place(0.0, 0.0, 1.5, turn).at(dy=reach - 0.02)
        pick = rng.uniform()
        if pick < 0.35:
            f.gallery(room, middle, 0.8 * along, int(rng.integers(2, 5)))
        elif pick < 0.6:
            f.window(
                room, middle.at(dx=rng.uniform(-0.4, 0.4) * along), rng.uniform(0.4, 0.7), 0.55, rng.uniform(1.0, 5.0)
            )
        elif pick < 0.75:
            o.clock(room, middle.at(dx=rng.uniform(-0.5, 0.5) * along, dz=0.3), 0.25)
    bulb = Place(rng.uniform(-0.6, 0.6) * half[0], rng.uniform(-0.6, 0.6) * half[1], rng.uniform(1.2, 2.2))
    return prepare(*room.arrays(), _light(rng, bulb), spacing=0.45, rays=48), low, high


def _light(rng: np.random.Generator, bulb: Place) -> np.ndarray:
    """From almost overcast to a hard low sun, from candle to neon; the lamp may be the only light."""
    lights = np.zeros((2, 5, 3))
    angle = rng.uniform(0, 2 * math.pi)
    towards = np.array([math.cos(angle), math.sin(angle), rng.uniform(0.5, 2.5)])
    towards /= np.linalg.norm(towards)
    warmth, tint = rng.uniform(-0.25, 0.35), rng.normal(0, 0.04)
    for k, (a, b) in enumerate(((-1, -0.5), (0.5, -1), (-0.5, 1), (1, 0.5))):
        d = towards + 0.05 * np.array([a, b, 0.0])
        lights[0, k] = d / np.linalg.norm(d)
        lights[1, k] = (bulb.x + 0.06 * a, bulb.y + 0.06 * b, bulb.z)
    lights[0, 4] = rng.uniform(0.1, 1.5) * np.array([1 + warmth, 1 + tint, 1 - warmth])
    lights[1, 4] = rng.uniform(0.1, 1.6) * np.array([1.2, 1.0, rng.uniform(0.5, 1.1)])
    return lights


def viewpoints(world: World, low, high, count: int, width: int, height: int, rng: np.random.Generator) -> list[Camera]:
    """Cameras with an open view: the best of a few random stands each, by how much of the room lies before them."""
    from fujinsplat.demo.poses import facing

    cameras = []
    for _ in range(count):
        best, chosen = -1.0, None
        for _ in range(8):
            eye = low + (high - low) * rng.uniform((0.08, 0.08, 0.35), (0.92, 0.92, 0.7))
            target = low + (high - low) * rng.uniform((0.3, 0.3, 0.1), (0.7, 0.7, 0.5))
            focal = rng.uniform(0.7, 1.2) * width
            camera = Camera(eye, facing(eye, target, rng.normal(0, 0.03)), focal, width, height)
            depth = look(world, camera, 8 / width, 0)[1]
            near, far = np.percentile(depth, (5, 90))
            score = min(near, 0.7) * far + 0.3 * np.log(far / max(near, 1e-3))
            if near > 0.45 and score > best:
                best, chosen = score, camera
        cameras.append(chosen or camera)
    return cameras
