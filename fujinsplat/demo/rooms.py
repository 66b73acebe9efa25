"""The demo family of rooms: a living room seen from its open side, different for every scene.

Cameras stand along y < -1 and look towards the middle of the room, so furniture lines the far and side walls, a table
stands in the middle, and a few things stand between it and the cameras.
"""

import numpy as np

from fujinsplat.demo import furniture as f
from fujinsplat.demo import ornaments as o
from fujinsplat.demo.builder import Palette, Place, Room, Spot, linear
from fujinsplat.demo.render import World, prepare

LOW = (-2.6, -3.2, 0.0)
HIGH = (2.6, 2.3, 2.6)
QUARTER = np.pi / 2


def _walls(room: Room) -> list[int]:
    """Materials of the six faces: -x, +x, -y, +y, floor, ceiling."""
    rng, p = room.rng, room.palette
    plain = room.material("paint", p.muted(0.6, 0.88), p.muted(0.3, 0.5), variation=0.12)
    pick = rng.uniform()
    if pick < 0.4:
        feature = room.material(
            "wallpaper", p.muted(0.55, 0.85), p.muted(0.4, 0.8), p.accent(), scale=rng.uniform(0.2, 0.4)
        )
    elif pick < 0.7:
        tone = rng.uniform(0.8, 1.2)
        feature = room.material(
            "bricks", (0.3 * tone, 0.15 * tone, 0.1), (0.19 * tone, 0.11, 0.08), (0.38, 0.35, 0.31), scale=0.085
        )
    else:
        feature = room.material("planks", p.wood_light, p.wood_dark, scale=0.14, gloss=0.2)
    pick = rng.uniform()
    if pick < 0.65:
        tone = rng.uniform(0.03, 0.1)
        boards = linear(tone, rng.uniform(0.2, 0.5), rng.uniform(0.45, 0.75)), linear(tone, 0.5, 0.3)
        floor = room.material("planks", *boards, scale=rng.uniform(0.08, 0.14), gloss=0.5, shininess=20.0)
    elif pick < 0.85:
        floor = room.material("tiles", p.pale(), p.dark(), (0.3, 0.28, 0.26), scale=0.3, gloss=0.5, variation=1.0)
    else:
        floor = room.material("terrazzo", p.muted(0.6, 0.8), p.dark(), p.accent(), scale=0.04, gloss=0.4)
    ceiling = room.material("paint", p.pale(), p.muted(), variation=0.06)
    sides = [plain, feature] if rng.uniform() < 0.5 else [feature, plain]
    far = feature if rng.uniform() < 0.55 else plain
    return [sides[0], sides[1], plain, far, floor, ceiling]


def _far_wall(room: Room) -> None:
    """Three bays along y = +2.3, in a random order."""
    rng = room.rng
    wall = HIGH[1]
    bays = rng.permutation(3)
    for slot, kind in zip((-1.65, 0.0, 1.65), bays, strict=True):
        slot += rng.normal(0, 0.06)
        if kind == 0:
            top = f.shelf(room, Place(slot, wall - 0.17), 0.62, rng.uniform(1.75, 2.15), int(rng.integers(5, 7)))
            o.clutter(room, top, 3)
        elif kind == 1:
            f.window(room, Place(slot, wall - 0.02, 1.5), 0.5, 0.6, glow=rng.uniform(1.6, 3.0))
            f.radiator(room, Place(slot, wall - 0.1), 0.45)
        else:
            deck = f.sideboard(room, Place(slot, wall - 0.28), 0.68, rng.uniform(0.7, 0.9))
            o.clutter(room, deck, 6)
            f.gallery(room, Place(slot, wall - 0.015, 1.65), 0.7, int(rng.integers(1, 4)))


def _side_walls(room: Room) -> None:
    """Furniture along x = -2.6 and x = +2.6, turned to face the room."""
    rng = room.rng
    pieces = rng.permutation(4)[:2]
    for side, kind in zip((-1, 1), pieces, strict=True):
        turn = side * -QUARTER

        def along(y: float, off: float, z: float = 0.0, turn=turn, side=side) -> Place:
            return Place(side * (HIGH[0] - off), y, z, turn)

        if kind == 0:
            f.sofa(room, along(0.55, 0.5), 0.8)
            f.gallery(room, along(0.55, 0.015, 1.6), 0.8, 2)
        elif kind == 1:
            f.shelf(room, along(0.9, 0.17), 0.5, rng.uniform(1.4, 2.0), 5)
            o.plant(room, along(-0.1, 0.35), rng.uniform(0.9, 1.3), 30)
        elif kind == 2:
            deck = f.sideboard(room, along(0.5, 0.27), 0.8, 0.8)
            o.clutter(room, deck, 6)
            o.clock(room, along(0.3, 0.03, 1.85), 0.17)
            o.frame(room, along(0.95, 0.015, 1.6), 0.22, 0.28)
        else:
            f.crates(room, along(1.0, 0.35), 4)
            f.crates(room, along(0.45, 0.32), 2)
            f.gallery(room, along(0.2, 0.015, 1.55), 0.7, 2)
            o.basket(room, along(-0.2, 0.35), 0.2)


def living_room(rng: np.random.Generator) -> tuple[World, np.ndarray]:
    """A room and the point its cameras look at."""
    palette = Palette(rng, saturation=rng.uniform(0.1, 0.4))
    room = Room(rng, palette)
    room.shell(LOW, HIGH, _walls(room))
    skirting = room.material("paint", palette.pale(), variation=0.05)
    room.box(Place(0.0, HIGH[1] - 0.01, 0.05), (HIGH[0], 0.012, 0.05), skirting)
    for side in (-1, 1):
        room.box(Place(side * (HIGH[0] - 0.01), -0.4, 0.05), (0.012, 2.7, 0.05), skirting)
    hue = (0.99, 0.03, 0.6, palette.hue)[int(rng.integers(4))]
    rug_colours = linear(hue, rng.uniform(0.35, 0.65), rng.uniform(0.3, 0.5)), palette.muted(0.5, 0.8), palette.dark()
    rug = room.material("rug", *rug_colours, scale=rng.uniform(0.11, 0.18))
    room.block(Place(rng.normal(0, 0.1), 0.1, 0.0, rng.normal(0, 0.12)), (1.35, 0.95, 0.006), rug)
    _far_wall(room)
    _side_walls(room)

    middle = Place(rng.normal(0, 0.1), rng.uniform(0.3, 0.5), 0.0, rng.normal(0, 0.15))
    deck = f.table(room, middle, 0.72, 0.4, rng.uniform(0.58, 0.72), cloth=rng.uniform() < 0.6)
    # the chart stands at the front of the table, the lamp at one end; everything else around them
    side = 1.0 if rng.uniform() < 0.5 else -1.0
    o.chart(room, deck.place.at(-side * 0.3, -0.18, 0.0, rng.normal(0, 0.12)), 0.17)
    bulb = o.lamp(room, deck.place.at(side * 0.48, 0.16))
    o.clutter(room, deck, 9, keep=[(-side * 0.3, -0.18, 0.2), (side * 0.48, 0.16, 0.15)])
    f.chair(room, middle.at(-0.35, 0.72, 0.0, rng.normal(np.pi, 0.3)))
    f.chair(room, middle.at(side * 1.05, 0.1, 0.0, side * QUARTER + rng.normal(0, 0.3)))

    near = [Place(-1.3, -0.45), Place(1.3, -0.4), Place(-0.62, -0.6), Place(0.68, -0.62)]
    kinds = rng.permutation(4)
    for spot, kind in zip(near, kinds, strict=True):
        x, y = rng.normal(0, 0.08, 2)
        spot = spot.at(x, y, 0.0, rng.uniform(-0.6, 0.6))
        if kind == 0:
            seat = f.stool(room, spot, 0.6)
            o.books_stack(room, seat.place)
            o.mug(room, seat.place.at(0.02, 0.0, 0.13))
        elif kind == 1:
            o.plant(room, spot, rng.uniform(0.9, 1.15), 30)
        elif kind == 2:
            low = o.carton(room, spot, 0.22)
            half = o.carton(room, spot.at(dz=2 * low[2], turn=0.2), 0.16)
            o.clutter(room, Spot(spot.at(dz=2 * low[2] + 2 * half[2]), half[0], half[1]), 2)
        else:
            seat = f.stool(room, spot, 0.5)
            o.basket(room, seat.place, 0.14)
            o.ball(room, spot.at(0.3, -0.02), 0.12)

    return prepare(*room.arrays(), _lights(rng, bulb)), np.array([middle.x, middle.y + 0.15, 0.72])


def _lights(rng: np.random.Generator, bulb: Place, strength: float = 1.0) -> np.ndarray:
    """A distant light from above and the side, four directions within its disc, and the lamp."""
    lights = np.zeros((2, 5, 3))
    angle = rng.uniform(0.5, 1.1) * (1 if rng.uniform() < 0.5 else -1)
    towards = np.array([np.sin(angle), -0.55 * np.cos(angle), rng.uniform(0.8, 1.3)])
    across = np.cross(towards, (0.0, 0.0, 1.0))
    across /= np.linalg.norm(across)
    over = np.cross(across, towards / np.linalg.norm(towards))
    warmth = rng.uniform(-0.12, 0.16)
    for k, (a, b) in enumerate(((-1, -0.5), (0.5, -1), (-0.5, 1), (1, 0.5))):
        d = towards / np.linalg.norm(towards) + 0.03 * (a * across + b * over)
        lights[0, k] = d / np.linalg.norm(d)
        lights[1, k] = (bulb.x + 0.05 * a, bulb.y + 0.05 * b, bulb.z)
    lights[0, 4] = strength * rng.uniform(0.9, 1.3) * np.array([1 + warmth, 1.0, 1 - 1.2 * warmth])
    lights[1, 4] = rng.uniform(0.15, 0.4) * np.array([1.25, 1.0, 0.68])
    return lights
