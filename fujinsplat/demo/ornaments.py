"""Small things that stand on furniture: what makes a room look lived in."""

import math

import numpy as np

from fujinsplat.demo.builder import Place, Room, Spot


def books_upright(room: Room, spot: Spot, width: float | None = None) -> float:
    """A row of books along the spot, leaning now and then; gives the width it took."""
    rng, p = room.rng, room.palette
    limit = 2 * spot.half_width if width is None else width
    x = 0.0
    tallest = min(0.32, 0.92 * spot.height)
    while x < limit - 0.05:
        thick = rng.uniform(0.012, 0.032)
        high = tallest * rng.uniform(0.62, 1.0)
        deep = min(spot.half_depth * 0.9, rng.uniform(0.07, 0.11))
        cover = p.accent() if rng.uniform() < 0.4 else (p.dark() if rng.uniform() < 0.5 else p.muted(0.3, 0.9))
        cloth = room.material("book", cover, p.pale(), p.accent())
        lean = rng.normal(0, 0.012) if rng.uniform() < 0.9 else rng.uniform(0.08, 0.2)
        place = spot.place.at(-spot.half_width + x + thick, rng.uniform(-0.02, 0.01), 0.001)
        room.block(place, (thick, deep, high / 2), cloth, roll=lean)
        x += 2 * thick + 0.002 + 0.5 * abs(lean) * high
    return x


def books_stack(room: Room, place: Place) -> float:
    """A pile of books lying flat; gives its height."""
    rng, p = room.rng, room.palette
    z = 0.0
    for _ in range(int(rng.integers(2, 6))):
        thick = rng.uniform(0.012, 0.025)
        cloth = room.material("book", p.accent(), p.pale(), p.muted())
        half = (rng.uniform(0.09, 0.13), rng.uniform(0.07, 0.1), thick)
        room.block(place.at(rng.normal(0, 0.01), rng.normal(0, 0.01), z, rng.normal(0, 0.2)), half, cloth)
        z += 2 * thick
    return z


def bottle(room: Room, place: Place) -> None:
    rng = room.rng
    glass = room.glaze()
    label = room.material("page", room.palette.pale(), room.palette.accent(), room.palette.dark(), scale=0.012)
    r = rng.uniform(0.028, 0.05)
    h = rng.uniform(0.12, 0.22)
    room.post(place, r, h, glass)
    room.post(place.at(dz=0.25 * h), 1.02 * r, 0.45 * h, label)
    room.post(place.at(dz=h), r, 0.35 * h, glass, taper=0.35)
    room.post(place.at(dz=1.35 * h), 0.36 * r, 0.3 * h, glass)
    room.post(place.at(dz=1.6 * h), 0.42 * r, 0.1 * h, room.material("paint", room.palette.accent()))


def vase(room: Room, place: Place, flowers: bool = True) -> None:
    rng, p = room.rng, room.palette
    glaze = room.glaze()
    r = rng.uniform(0.05, 0.09)
    h = rng.uniform(0.14, 0.26)
    room.post(place, 0.6 * r, 0.12 * h, glaze, taper=1.2)
    room.blob(place.at(dz=0.45 * h), (r, r, 0.4 * h), glaze)
    room.post(place.at(dz=0.75 * h), 0.55 * r, 0.25 * h, glaze, taper=1.35)
    if not flowers:
        return
    stem = room.material("paint", (0.08, 0.2, 0.05))
    bloom = room.material("tufts", p.accent(), p.accent(), scale=0.008)
    green = room.material("leaf", (0.09, 0.26, 0.06), (0.2, 0.42, 0.1))
    for _ in range(int(rng.integers(4, 8))):
        tilt, roll = rng.normal(0, 0.3), rng.normal(0, 0.3)
        length = rng.uniform(0.14, 0.26)
        root = place.at(dz=0.95 * h)
        tip = root.at(length * math.sin(roll), -length * math.sin(tilt), length * math.cos(tilt) * math.cos(roll))
        middle = Place((root.x + tip.x) / 2, (root.y + tip.y) / 2, (root.z + tip.z) / 2, root.yaw)
        room.bar(middle, 0.004, length, stem, tilt=tilt, roll=roll)
        size = rng.uniform(0.02, 0.04)
        room.blob(tip, (size, size, 0.7 * size), bloom, tilt=tilt, roll=roll)
        if rng.uniform() < 0.5:
            room.blob(middle, (0.045, 0.018, 0.006), green, tilt=tilt, roll=roll + 0.6)


def mug(room: Room, place: Place) -> None:
    r = room.rng.uniform(0.035, 0.05)
    room.post(place, r, 2.1 * r, room.glaze(), taper=1.05)


def bowl_of_fruit(room: Room, place: Place) -> None:
    rng = room.rng
    room.post(place, 0.08, 0.07, room.glaze(), taper=1.8)
    for _ in range(int(rng.integers(5, 9))):
        hue = [(0.5, 0.05, 0.03), (0.62, 0.3, 0.03), (0.3, 0.42, 0.05), (0.6, 0.45, 0.06)][int(rng.integers(4))]
        skin = room.material("paint", hue, (0.3, 0.15, 0.03), gloss=0.6, shininess=40.0, variation=0.3)
        r = rng.uniform(0.03, 0.042)
        angle, d = rng.uniform(0, 6.28), 0.075 * math.sqrt(rng.uniform())
        room.blob(
            place.at(d * math.cos(angle), d * math.sin(angle), 0.08 + rng.uniform(0, 0.035)), (r, r, 0.95 * r), skin
        )


def globe(room: Room, place: Place) -> None:
    r = room.rng.uniform(0.1, 0.15)
    sea = room.material("globe", (0.06, 0.16, 0.36), (0.45, 0.36, 0.14), (0.2, 0.33, 0.1), gloss=0.6, shininess=50.0)
    foot = room.wooden(0.03)
    room.post(place, 0.09, 0.025, foot, taper=0.8)
    room.post(place.at(dz=0.02), 0.012, 0.06, foot)
    room.blob(place.at(dz=0.07 + r, turn=room.rng.uniform(0, 6)), (r, r, r), sea, tilt=0.4)


def ball(room: Room, place: Place, radius: float | None = None) -> None:
    p = room.palette
    r = room.rng.uniform(0.06, 0.13) if radius is None else radius
    skin = room.material("ball", p.accent(), p.pale(), p.accent(), gloss=0.5, shininess=40.0)
    turn = room.rng.uniform(-1, 1, 2)
    room.blob(place.at(dz=r), (r, r, r), skin, tilt=turn[0], roll=turn[1])


def frame(room: Room, place: Place, half_width: float, half_height: float, lean: float = 0.0) -> None:
    """A framed print; `place` is its middle when it hangs, the middle of its foot when it leans."""
    p, rng = room.palette, room.rng
    edge = room.wooden(0.03) if rng.uniform() < 0.6 else room.material("paint", p.dark(), gloss=0.5)
    picture = room.material("poster", p.accent(), p.muted(), p.accent())
    middle = place.at(dz=half_height * math.cos(lean), dy=half_height * math.sin(lean)) if lean else place
    room.box(middle, (half_width, 0.012, half_height), edge, tilt=-lean)
    inner = middle.at(dy=-0.0125 * math.cos(lean), dz=0.0125 * math.sin(lean))
    room.box(inner, (half_width - 0.025, 0.004, half_height - 0.025), picture, tilt=-lean)


def chart(room: Room, place: Place, half_width: float = 0.2, lean: float = 0.2) -> None:
    """The colour chart, leaning back a little, its face towards -y of `place`."""
    face = room.material("chart", (0.02, 0.02, 0.02))
    high = half_width * 0.69
    room.box(place.at(dz=high * math.cos(lean), dy=high * math.sin(lean)), (half_width, 0.008, high), face, tilt=-lean)


def carton(room: Room, place: Place, size: float | None = None) -> tuple[float, float, float]:
    """A cardboard box; gives its half sizes."""
    rng, p = room.rng, room.palette
    size = rng.uniform(0.1, 0.22) if size is None else size
    half = (size * rng.uniform(0.8, 1.3), size * rng.uniform(0.7, 1.1), size * rng.uniform(0.55, 1.0))
    brown = rng.uniform(0.8, 1.2)
    board = room.material("carton", (0.36 * brown, 0.24 * brown, 0.13 * brown), (0.5, 0.42, 0.28), p.accent())
    room.block(place, half, board)
    return half


def toy_blocks(room: Room, place: Place) -> None:
    rng, p = room.rng, room.palette
    for level, count in enumerate((3, 2, 1)):
        for k in range(count):
            side = 0.028
            colours = (p.accent(), p.pale(), p.dark())
            skin = room.material("dots" if rng.uniform() < 0.3 else "paint", *colours, scale=0.02, gloss=0.4)
            spot = place.at((k - (count - 1) / 2) * 2.25 * side, rng.normal(0, 0.006), level * 2 * side)
            room.block(spot.at(turn=rng.normal(0, 0.2)), (side, side, side), skin)


def clock(room: Room, place: Place, radius: float = 0.16) -> None:
    """A round clock hanging with its dial towards -y."""
    p = room.palette
    dial = room.material("clock", p.pale(), (0.02, 0.02, 0.02), p.dark())
    room.bar(place, radius, 0.04, dial, tilt=math.pi / 2)


def plant(room: Room, place: Place, size: float = 1.0, leaves: int = 26) -> None:
    """A pot with arching leaves."""
    rng = room.rng
    pot = (
        room.material("paint", (0.42, 0.16, 0.08), (0.3, 0.2, 0.15), variation=0.25)
        if rng.uniform() < 0.5
        else room.glaze()
    )
    room.post(place, 0.1 * size, 0.2 * size, pot, taper=1.35)
    room.post(
        place.at(dz=0.185 * size), 0.125 * size, 0.02 * size, room.material("terrazzo", (0.06, 0.04, 0.03), scale=0.01)
    )
    green = [
        room.material("leaf", np.array(base) * rng.uniform(0.7, 1.3), np.array(base) * 1.9, gloss=0.5, shininess=25.0)
        for base in ((0.06, 0.2, 0.04), (0.1, 0.26, 0.06), (0.08, 0.17, 0.07))
    ]
    for k in range(leaves):
        angle = 2.4 * k + rng.normal(0, 0.2)
        reach = size * rng.uniform(0.06, 0.24)
        height = size * (0.3 + 0.55 * (k + 1) / leaves * rng.uniform(0.7, 1.1))
        droop = rng.uniform(-0.2, 0.9)
        half = (size * rng.uniform(0.08, 0.13), size * rng.uniform(0.03, 0.05), size * 0.008)
        spot = place.at(reach * math.cos(angle), reach * math.sin(angle), height, angle)
        room.blob(spot, half, green[k % 3], roll=droop, tilt=rng.normal(0, 0.2))
    room.post(place.at(dz=0.2 * size), 0.014 * size, 0.5 * size, room.wooden(0.02), taper=0.6)


def lamp(room: Room, place: Place, tall: float = 0.34) -> Place:
    """A table lamp; gives the place of its bulb."""
    p = room.palette
    base = room.glaze()
    room.post(place, 0.07, 0.02, base)
    room.blob(place.at(dz=0.3 * tall), (0.06, 0.06, 0.28 * tall), base)
    room.post(place.at(dz=0.5 * tall), 0.01, 0.4 * tall, base)
    colour = p.pale()
    shade = room.material("stripes", colour, np.array(colour) * 0.85, colour, scale=0.03, emission=0.9)
    room.post(place.at(dz=0.75 * tall), 0.14, 0.18, shade, taper=0.65)
    return place.at(dz=0.75 * tall + 0.09)


def papers(room: Room, place: Place) -> None:
    """Loose sheets and a magazine."""
    rng, p = room.rng, room.palette
    for k in range(int(rng.integers(2, 4))):
        sheet = room.material("page", p.pale(), p.accent(), p.muted(), scale=0.009)
        half = (0.1, 0.14, 0.002)
        room.block(place.at(rng.normal(0, 0.04), rng.normal(0, 0.04), 0.004 * k, rng.normal(0, 0.5)), half, sheet)


def basket(room: Room, place: Place, radius: float = 0.16) -> None:
    """A wicker basket with balls of wool."""
    rng, p = room.rng, room.palette
    weave = room.material("wicker", p.wood_light, p.wood_dark, scale=0.03)
    room.post(place, radius, 1.3 * radius, weave, taper=1.2)
    for k in range(5):
        wool = room.material("tufts", p.accent(), p.muted(), scale=0.01)
        r = radius * rng.uniform(0.34, 0.46)
        angle = 1.257 * k + rng.uniform(0, 0.5)
        spot = place.at(0.6 * radius * math.cos(angle), 0.6 * radius * math.sin(angle), 1.3 * radius + 0.2 * r)
        room.blob(spot, (r, r, r), wool)


def radio(room: Room, place: Place) -> None:
    p = room.palette
    room.block(place, (0.15, 0.06, 0.09), room.wooden(0.04))
    grille = room.material("keys", p.dark(), p.muted(), p.pale(), scale=0.012)
    room.box(place.at(-0.04, -0.061, 0.09), (0.09, 0.002, 0.065), grille)
    for x in (0.075, 0.115):
        room.bar(place.at(x, -0.065, 0.06), 0.015, 0.012, room.material("paint", p.pale()), tilt=math.pi / 2)


STANDING = (bottle, bottle, vase, mug, mug, globe, ball, toy_blocks, books_stack, bowl_of_fruit, radio, papers, basket)
REACH = {bottle: 0.06, vase: 0.11, mug: 0.06, globe: 0.15, ball: 0.13, toy_blocks: 0.1, books_stack: 0.14,
         bowl_of_fruit: 0.15, radio: 0.16, papers: 0.16, basket: 0.2}  # fmt: skip


def clutter(room: Room, spot: Spot, count: int, things=STANDING, keep: list[tuple[float, float, float]] | None = None):
    """Set up to `count` things on a surface without overlap; `keep` lists circles (x, y, r) already taken."""
    rng = room.rng
    taken = list(keep or [])
    for _ in range(count):
        thing = things[int(rng.integers(len(things)))]
        reach = REACH[thing]
        if reach > spot.half_depth * 1.3 or reach > spot.half_width:
            continue
        for _ in range(12):
            x = rng.uniform(-1, 1) * max(spot.half_width - reach, 0.0)
            y = rng.uniform(-1, 1) * max(spot.half_depth - reach, 0.0)
            if all((x - a) ** 2 + (y - b) ** 2 > (reach + r) ** 2 for a, b, r in taken):
                taken.append((x, y, reach))
                thing(room, spot.place.at(x, y, 0.001, rng.normal(0, 0.4)))
                break
