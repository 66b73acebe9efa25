"""What surfaces are made of: wood, brick, tile, cloth, stone, wicker and paint, in linear light.

Each function takes a material row (see `materials.py`), surface coordinates `u, v` in metres and the sample's footprint
`fw` in metres, and gives the linear sRGB albedo.
"""

import math

from fujinsplat.demo.jit import kernel
from fujinsplat.demo.noise import band, fbm2, fbm3, hash01, step, value2, visible

A, B, C, SCALE, SEED, VARIATION = 1, 4, 7, 10, 11, 15


@kernel
def mix(m, first, second, w):
    """Between two of a material's three colours; w outside [0, 1] is clamped."""
    w = min(max(w, 0.0), 1.0)
    return (
        m[first] * (1.0 - w) + m[second] * w,
        m[first + 1] * (1.0 - w) + m[second + 1] * w,
        m[first + 2] * (1.0 - w) + m[second + 2] * w,
    )


@kernel
def shade(colour, gain):
    return colour[0] * gain, colour[1] * gain, colour[2] * gain


@kernel
def blend(colour, other, w):
    w = min(max(w, 0.0), 1.0)
    return (
        colour[0] * (1.0 - w) + other[0] * w,
        colour[1] * (1.0 - w) + other[1] * w,
        colour[2] * (1.0 - w) + other[2] * w,
    )


@kernel
def colour(m, which):
    return m[which], m[which + 1], m[which + 2]


@kernel
def paint(m, u, v, fw):
    """Painted plaster: broad stains, roller texture, a few scuffs."""
    s = int(m[SEED])
    n = 0.7 * fbm2(u / 0.7, v / 0.7, s, fw / 0.7, 5) + 0.5 * value2(u / 0.02, v / 0.02, s + 9) * visible(fw, 0.02)
    scuff = max(fbm2(u / 0.09, v / 0.25, s + 31, fw / 0.09, 3) - 0.45, 0.0)
    return shade(mix(m, A, B, 1.5 * scuff), 1.0 + m[VARIATION] * n)


@kernel
def planks(m, u, v, fw):
    """Boards along u: grain stretched along the board, knots, a dark gap between boards."""
    s = int(m[SEED])
    w = m[SCALE]
    row = math.floor(v / w)
    shift = hash01(row, 3, s) * 7.0
    length = 9.0 * w
    piece = math.floor((u + shift * length) / length)
    tone = hash01(row, piece, s + 1)
    x = u / (6.0 * w) + 17.0 * tone
    y = v / (0.5 * w) + 5.0 * tone
    warp = 0.9 * value2(x * 0.8, y * 0.35, s + 5)
    rings = math.sin(9.0 * (y * 0.55 + warp + 0.25 * fbm2(x, y, s + 2, fw / (6.0 * w), 3)))
    fine = fbm2(u / (0.9 * w), v / (0.06 * w), s + 4, fw / (0.06 * w), 3)
    grain = 0.5 + 0.32 * rings * visible(fw, 0.1 * w) + 0.45 * fine
    edge = v / w - row
    gap = band(edge, 0.015, 0.985, fw / w)
    along = (u + shift * length) / length - piece
    gap *= band(along, 0.004, 0.996, fw / length)
    return shade(mix(m, A, B, 0.75 * grain), (0.75 + 0.5 * tone) * (0.3 + 0.7 * gap))


@kernel
def wood(m, u, v, fw):
    """One piece of wood, grain along u."""
    s = int(m[SEED])
    w = m[SCALE]
    y = v / w + 0.8 * value2(u / (7.0 * w), v / (2.0 * w), s) + 0.3 * value2(u / (2.0 * w), v / w, s + 1)
    rings = math.sin(7.0 * y) * visible(fw, 0.3 * w)
    pores = fbm2(u / (1.5 * w), v / (0.05 * w), s + 3, fw / (0.05 * w), 3)
    return mix(m, A, B, 0.45 + 0.3 * rings + 0.5 * pores)


@kernel
def bricks(m, u, v, fw):
    """A running bond with mortar, each brick with its own firing."""
    s = int(m[SEED])
    h = m[SCALE]
    w = 2.9 * h
    row = math.floor(v / h)
    x = u / w + 0.5 * (row & 1)
    column = math.floor(x)
    rough = 0.03 * value2(u / (0.3 * h), v / (0.3 * h), s + 2)
    inside = band(x - column + rough * 0.4, 0.025, 0.975, fw / w) * band(v / h - row + rough, 0.07, 0.93, fw / h)
    fired = hash01(row, column, s)
    grit = fbm2(u / (0.35 * h), v / (0.35 * h), s + 3, fw / (0.35 * h), 4)
    face = shade(mix(m, A, B, fired), 1.0 + 0.35 * grit + 0.3 * (hash01(column, row, s + 8) - 0.5))
    return blend(shade(colour(m, C), 1.0 + 0.25 * grit), face, inside)


@kernel
def tiles(m, u, v, fw):
    """Square tiles in two glazes with grout."""
    s = int(m[SEED])
    w = m[SCALE]
    i = math.floor(u / w)
    j = math.floor(v / w)
    x = u / w - i
    y = v / w - j
    glaze = ((i + j) & 1) * m[VARIATION] + (1.0 - m[VARIATION]) * step(hash01(i, j, s), 0.72, 0.01)
    cloud = fbm2(u / (0.4 * w) + 9.0 * hash01(i, j, s + 1), v / (0.4 * w), s + 2, fw / (0.4 * w), 3)
    face = shade(mix(m, A, B, glaze + 0.12 * cloud), 0.92 + 0.16 * hash01(j, i, s + 4) + 0.12 * cloud)
    inside = band(x, 0.02, 0.98, fw / w) * band(y, 0.02, 0.98, fw / w)
    return blend(colour(m, C), face, inside)


@kernel
def plaid(m, u, v, fw):
    """Woven cloth: broad and narrow bands crossing, with the weave itself where it can be seen."""
    w = m[SCALE]
    x = u / w - math.floor(u / w)
    y = v / w - math.floor(v / w)
    soft = fw / w
    broad = 0.5 * (band(x, 0.1, 0.45, soft) + band(y, 0.1, 0.45, soft))
    thin = max(band(x, 0.7, 0.76, soft), band(y, 0.7, 0.76, soft))
    weave = 0.16 * math.sin(u * 900.0) * math.sin(v * 900.0) * visible(fw, 0.004)
    wear = 0.15 * fbm2(u / 0.15, v / 0.15, int(m[SEED]), fw / 0.15, 4)
    return shade(blend(mix(m, A, B, broad), colour(m, C), 0.8 * thin), 1.0 + weave + wear)


@kernel
def stripes(m, u, v, fw):
    """Ticking stripes of uneven width along v."""
    s = int(m[SEED])
    w = m[SCALE]
    x = u / w - math.floor(u / w)
    soft = fw / w
    first = band(x, 0.08, 0.42, soft)
    second = band(x, 0.55, 0.62, soft) + band(x, 0.78, 0.85, soft)
    wear = 0.14 * fbm2(u / 0.08, v / 0.12, s, fw / 0.08, 4)
    return shade(blend(mix(m, A, B, first), colour(m, C), second), 1.0 + wear)


@kernel
def dots(m, u, v, fw):
    """Printed dots in offset rows."""
    w = m[SCALE]
    row = math.floor(v / w)
    x = u / w + 0.5 * (int(row) & 1)
    x -= math.floor(x) + 0.5
    y = v / w - row - 0.5
    inside = 1.0 - step(math.sqrt(x * x + y * y), 0.28, fw / w)
    wear = 0.12 * fbm2(u / 0.1, v / 0.1, int(m[SEED]), fw / 0.1, 4)
    return shade(mix(m, A, B, inside), 1.0 + wear)


@kernel
def tufts(m, u, v, fw):
    """Knitted or tufted upholstery: a strong fine grain with broad wear."""
    s = int(m[SEED])
    w = m[SCALE]
    fine = value2(u / w, v / w, s) * visible(fw, w)
    rib = math.sin(6.2832 * u / (3.0 * w)) * visible(fw, 1.2 * w)
    wear = fbm2(u / 0.25, v / 0.25, s + 2, fw / 0.25, 5)
    return shade(mix(m, A, B, 0.35 + 0.3 * wear + 0.25 * fine), 1.0 + 0.18 * rib + 0.2 * fine)


@kernel
def stone(m, x, y, z, fw):
    """Veined stone, solid in three dimensions."""
    s = int(m[SEED])
    w = m[SCALE]
    n = fbm3(x / w, y / w, z / w, s, fw / w, 4)
    vein = 1.0 - abs(math.sin(3.0 * (x + 0.6 * y + 0.8 * z) / w + 5.0 * n))
    vein = vein * vein * vein * visible(fw, 0.25 * w)
    return shade(mix(m, A, B, 0.85 * vein + 0.2 * n), 1.0 + 0.15 * n)


@kernel
def terrazzo(m, u, v, fw):
    """Chips of two colours in a ground: the nearest of jittered points in each cell."""
    s = int(m[SEED])
    w = m[SCALE]
    x = u / w
    y = v / w
    i0 = math.floor(x)
    j0 = math.floor(y)
    best = 9.0
    pick = 0.0
    for i in range(i0 - 1, i0 + 2):
        for j in range(j0 - 1, j0 + 2):
            dx = x - i - hash01(i, j, s)
            dy = y - j - hash01(i, j, s + 1)
            d = (dx * dx + dy * dy) / (0.3 + hash01(i, j, s + 2))
            if d < best:
                best = d
                pick = hash01(i, j, s + 3)
    chip = (1.0 - step(best, 0.14, fw / w)) * visible(fw, w)
    chipcolour = colour(m, B) if pick < 0.5 else colour(m, C)
    ground = shade(colour(m, A), 1.0 + 0.12 * fbm2(x, y, s + 5, fw / w, 3))
    return blend(ground, shade(chipcolour, 0.6 + 0.8 * pick), chip)


@kernel
def wicker(m, u, v, fw):
    """Over-and-under weave of a basket."""
    w = m[SCALE]
    i = math.floor(u / w)
    j = math.floor(v / (0.45 * w))
    x = u / w - i - 0.5
    y = v / (0.45 * w) - j - 0.5
    if (i + j) & 1:
        height = 1.0 - 3.0 * x * x
    else:
        height = 0.55 - 1.4 * y * y + 0.3 * x
    strand = 0.75 + 0.5 * hash01(i, j, int(m[SEED]))
    keep = visible(fw, 0.5 * w)
    return shade(mix(m, B, A, 0.55 + (height - 0.5) * keep), 1.0 + (strand - 1.0) * keep)


@kernel
def wallpaper(m, u, v, fw):
    """Stripes with a mirrored leaf motif between them."""
    w = m[SCALE]
    s = int(m[SEED])
    i = math.floor(u / w)
    x = abs(u / w - i - 0.5)
    y = v / (1.4 * w) + 0.5 * (i & 1)
    y = abs(y - math.floor(y) - 0.5)
    soft = fw / w
    leaf = math.sqrt(x * x * 5.0 + y * y * 1.6) + 0.09 * math.sin(24.0 * x + 9.0 * y) + 0.06 * math.sin(31.0 * y)
    motif = band(leaf, 0.16, 0.27, soft) + (1.0 - step(leaf, 0.09, soft)) + band(leaf, 0.36, 0.4, soft)
    line = band(x, 0.455, 0.48, soft)
    grain = 1.0 + 0.08 * fbm2(u / 0.3, v / 0.3, s, fw / 0.3, 5)
    return shade(blend(mix(m, A, B, motif * visible(fw, 0.3 * w)), colour(m, C), line), grain)


@kernel
def metal(m, u, v, fw):
    """Painted or brushed metal with scratches along u and rust spots."""
    s = int(m[SEED])
    brushed = fbm2(u / 0.12, v / 0.004, s, fw / 0.004, 2)
    rust = max(fbm2(u / 0.08, v / 0.08, s + 4, fw / 0.08, 4) - 0.4, 0.0)
    return shade(mix(m, A, B, 3.0 * rust * m[VARIATION]), 1.0 + 0.14 * brushed)
