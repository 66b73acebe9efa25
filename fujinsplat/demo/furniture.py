"""Furniture. Each function builds one piece at a place and gives the surfaces on which things may stand."""

import math

from fujinsplat.demo.builder import Place, Room, Spot
from fujinsplat.demo.ornaments import books_upright, clutter, frame, plant


def table(room: Room, place: Place, half_width=0.75, half_depth=0.42, height=0.72, cloth=False) -> Spot:
    wood = room.wooden(0.07)
    room.block(place.at(dz=height - 0.035), (half_width, half_depth, 0.0175), wood)
    room.block(place.at(dz=height - 0.11), (half_width - 0.08, half_depth - 0.08, 0.035), wood)
    for sx in (-1, 1):
        for sy in (-1, 1):
            leg = place.at(sx * (half_width - 0.07), sy * (half_depth - 0.07))
            room.post(leg, 0.022, height - 0.1, wood, taper=1.5)
    if cloth:
        runner = room.cloth()
        room.block(place.at(dz=height), (half_width * 0.45, half_depth + 0.012, 0.004), runner)
        for sy in (-1, 1):
            room.box(place.at(dy=sy * (half_depth + 0.009), dz=height - 0.1), (half_width * 0.45, 0.005, 0.105), runner)
    return Spot(place.at(dz=height + 0.008 * cloth), half_width - 0.03, half_depth - 0.03)


def round_table(room: Room, place: Place, radius=0.42, height=0.6) -> Spot:
    wood = room.wooden(0.06)
    room.post(place.at(dz=height - 0.03), radius, 0.03, wood)
    room.post(place, 0.2, 0.04, wood, taper=0.6)
    room.post(place.at(dz=0.03), 0.045, height - 0.05, wood, taper=0.8)
    return Spot(place.at(dz=height), 0.65 * radius, 0.65 * radius)


def shelf(room: Room, place: Place, half_width=0.5, height=1.9, levels=5, fill=0.8) -> Spot:
    """An open bookcase with its back at +y; filled with books and things."""
    rng = room.rng
    wood = room.wooden(0.05) if rng.uniform() < 0.7 else room.material("paint", room.palette.muted(), variation=0.1)
    depth = 0.14
    for sx in (-1, 1):
        room.block(place.at(dx=sx * half_width), (0.012, depth, height / 2), wood)
    room.block(place.at(dy=depth), (half_width, 0.008, height / 2), wood)
    gap = height / levels
    for level in range(levels + 1):
        z = min(level * gap + 0.03, height - 0.02)
        room.box(place.at(dz=z), (half_width, depth, 0.011), wood)
        if level == levels:
            break
        deck = place.at(dy=-0.01, dz=z + 0.012)
        spot = Spot(deck, half_width - 0.025, depth - 0.02, gap - 0.04)
        if rng.uniform() < fill:
            share = rng.uniform(0.35, 1.0) * 2 * spot.half_width
            used = books_upright(room, spot, share)
            rest = (2 * spot.half_width - used) / 2
            if rest > 0.1:
                clutter(room, Spot(deck.at(dx=spot.half_width - rest), rest, spot.half_depth), 2)
        else:
            clutter(room, spot, 4)
    return Spot(place.at(dz=height), half_width - 0.03, depth)


def sideboard(room: Room, place: Place, half_width=0.7, height=0.75) -> Spot:
    rng, p = room.rng, room.palette
    body = room.wooden(0.06)
    depth = 0.22
    room.block(place.at(dz=0.08), (half_width, depth, (height - 0.08) / 2), body)
    room.block(place.at(dz=height), (half_width + 0.015, depth + 0.015, 0.012), body)
    for sx in (-1, 1):
        for sy in (-1, 1):
            room.post(place.at(sx * (half_width - 0.05), sy * (depth - 0.05)), 0.018, 0.09, body)
    doors = int(rng.integers(2, 5))
    front = room.material("wood", p.muted(), p.wood_dark, scale=0.06, gloss=0.3) if rng.uniform() < 0.5 else body
    knob = room.material("metal", (0.6, 0.5, 0.3), gloss=1.5, shininess=60.0)
    for k in range(doors):
        w = half_width / doors
        x = -half_width + (2 * k + 1) * w
        rows = 1 if k % 2 else 3
        h = (height - 0.12) / rows / 2
        for row in range(rows):
            z = 0.1 + (2 * row + 1) * h
            room.box(place.at(x, -depth - 0.006, z), (w - 0.012, 0.008, h - 0.01), front)
            room.blob(place.at(x, -depth - 0.022, z + 0.3 * h), (0.014, 0.012, 0.014), knob)
    return Spot(place.at(dz=height + 0.024), half_width - 0.02, depth - 0.02)


def chair(room: Room, place: Place) -> None:
    """Facing -y, back rest at +y."""
    wood = room.wooden(0.04)
    seat = room.cloth()
    for sx in (-1, 1):
        for sy in (-1, 1):
            room.post(place.at(0.19 * sx, 0.19 * sy), 0.014, 0.45, wood, taper=1.3)
        room.block(place.at(0.19 * sx, 0.2, 0.44), (0.016, 0.014, 0.24), wood, tilt=-0.08)
    room.block(place.at(dz=0.43), (0.22, 0.22, 0.015), wood)
    room.blob(place.at(dz=0.46), (0.21, 0.21, 0.035), seat)
    for z in (0.6, 0.72, 0.84):
        room.box(place.at(0, 0.2 + 0.08 * (z - 0.6), z), (0.19, 0.01, 0.03), wood, tilt=-0.08)


def sofa(room: Room, place: Place, half_width=0.85) -> Spot:
    """Facing -y, with cushions."""
    rng = room.rng
    cover = room.material("tufts", room.palette.muted(0.3, 0.7), room.palette.dark(), scale=0.012)
    room.block(place.at(dz=0.08), (half_width, 0.38, 0.15), cover)
    room.block(place.at(dy=0.32, dz=0.3), (half_width, 0.09, 0.26), cover, tilt=-0.12)
    room.bar(place.at(0.0, 0.39, 0.83), 0.085, 2 * half_width, cover, roll=math.pi / 2)
    for sx in (-1, 1):
        arm = place.at(sx * half_width, -0.02)
        room.block(arm.at(dz=0.08), (0.09, 0.38, 0.22), cover)
        room.bar(arm.at(dz=0.54), 0.1, 0.76, cover, tilt=math.pi / 2)
    count = int(rng.integers(2, 4))
    for k in range(count):
        x = (k - (count - 1) / 2) * 1.7 * half_width / count
        room.blob(place.at(x, -0.06, 0.4), (0.85 * half_width / count, 0.31, 0.09), cover)
    for k in range(int(rng.integers(2, 5))):
        x = rng.uniform(-0.8, 0.8) * half_width
        room.blob(
            place.at(x, 0.1 + 0.02 * k, 0.6, rng.normal(0, 0.3)),
            (0.2, 0.08, 0.19),
            room.cloth(),
            tilt=-0.3,
            roll=rng.normal(0, 0.25),
        )
    return Spot(place.at(dz=0.48, dy=-0.1), half_width - 0.2, 0.2)


def stool(room: Room, place: Place, height=0.46) -> Spot:
    wood = room.wooden(0.03)
    room.post(place.at(dz=height - 0.035), 0.17, 0.035, wood)
    for k in range(3):
        a = 2.0944 * k + 0.4
        foot = place.at(0.12 * math.cos(a), 0.12 * math.sin(a), 0.0, a)
        room.post(foot, 0.014, height - 0.02, wood, roll=-0.1)
    return Spot(place.at(dz=height), 0.13, 0.13)


def window(room: Room, place: Place, half_width=0.55, half_height=0.6, glow=2.5) -> None:
    """A window in a wall whose inner side is -y of `place` (its middle), with a frame, a sill and curtains."""
    rng, p = room.rng, room.palette
    outside = room.material("outdoors", (0.6, 0.7, 0.85), (0.35, 0.5, 0.8), (0.07, 0.13, 0.05), emission=glow)
    room.box(place, (half_width, 0.01, half_height), outside)
    white = room.material("paint", p.pale(), variation=0.05, gloss=0.4)
    for sx in (-1, 1):
        room.box(place.at(sx * half_width, -0.02), (0.03, 0.03, half_height + 0.03), white)
        room.box(place.at(dy=-0.02, dz=sx * half_height), (half_width, 0.03, 0.03), white)
    room.box(place.at(dy=-0.02), (0.016, 0.02, half_height), white)
    room.box(place.at(dy=-0.02, dz=0.25 * half_height), (half_width, 0.02, 0.013), white)
    room.box(place.at(dy=-0.09, dz=-half_height - 0.03), (half_width + 0.08, 0.1, 0.015), white)
    cloth = room.cloth()
    for sx in (-1, 1):
        for k in range(6):
            x = sx * (half_width + 0.2 - 0.07 * k)
            room.post(
                place.at(x, -0.1 + 0.012 * (k & 1), -half_height - 0.3), (0.042, 0.03), 2 * half_height + 0.42, cloth
            )
    rod = room.material("metal", (0.4, 0.32, 0.2), gloss=1.2)
    room.bar(place.at(0.0, -0.1, half_height + 0.13), 0.012, 2 * half_width + 0.7, rod, roll=math.pi / 2)
    if rng.uniform() < 0.6:
        plant(room, place.at(rng.uniform(-0.3, 0.3), -0.09, -half_height - 0.015), 0.55, 16)


def radiator(room: Room, place: Place, half_width=0.4) -> None:
    iron = room.material("paint", room.palette.pale(), (0.3, 0.2, 0.12), variation=0.1, gloss=0.5)
    count = int(half_width / 0.035)
    for k in range(count):
        x = (k - (count - 1) / 2) * 0.07
        room.block(place.at(x, 0.0, 0.08), (0.026, 0.05, 0.27), iron)
    room.bar(place.at(dz=0.15), 0.02, 2 * half_width, iron, roll=math.pi / 2)
    room.bar(place.at(dz=0.55), 0.02, 2 * half_width, iron, roll=math.pi / 2)


def gallery(room: Room, place: Place, half_width: float, count: int) -> None:
    """Framed prints of several sizes along a wall; `place` is at eye height in front of the wall."""
    rng = room.rng
    for k in range(count):
        x = (2 * (k + 0.5) / count - 1) * half_width
        w = min(half_width / count * 0.85, rng.uniform(0.16, 0.36))
        h = w * rng.uniform(0.75, 1.5)
        frame(room, place.at(x, 0.0, rng.normal(0, 0.1)), w, h)


def crates(room: Room, place: Place, count: int) -> None:
    """Cartons, stacked."""
    from fujinsplat.demo.ornaments import carton

    rng = room.rng
    z = 0.0
    for k in range(count):
        half = carton(room, place.at(rng.normal(0, 0.02), rng.normal(0, 0.02), z, rng.normal(0, 0.15)), 0.24 - 0.03 * k)
        z += 2 * half[2]
