"""Things printed, bound or drawn: posters, books, pages, cartons, rugs, the colour chart, the view from a window.

Like `textures.py`, with normalised coordinates `un, vn` in [-1, 1] over the face as well.
"""

import math

import numpy as np

from fujinsplat.core.color import decode
from fujinsplat.demo.jit import kernel
from fujinsplat.demo.noise import band, fbm2, fbm3, hash01, step, value2, visible
from fujinsplat.demo.textures import SCALE, SEED, A, B, C, blend, colour, mix, shade


def _chart() -> np.ndarray:
    """The 24 patches of the usual colour chart as linear sRGB `[24, 3]`, row by row from the top left."""
    encoded = (
        "735244 c29682 627a9d 576c43 8580b1 67bdaa d67e2c 505ba6 c15a63 5e3c6c 9dbc40 e0a32e "
        "383d96 469449 af363c e7c71f bb5695 0885a1 f3f3f2 c8c8c8 a0a0a0 7a7a79 555555 343434"
    ).split()
    srgb = np.array([[int(h[i : i + 2], 16) / 255 for i in (0, 2, 4)] for h in encoded])
    return decode(srgb)


CHART = _chart()


@kernel
def chart(m, un, vn, fw, half):
    """Six by four patches in a black frame; `half` is the chart's half width in metres."""
    x = (un / 0.95 + 1.0) * 3.0
    y = (1.0 - vn / 0.93) * 2.0
    i = math.floor(x)
    j = math.floor(y)
    if i < 0 or i > 5 or j < 0 or j > 3:
        return 0.02, 0.02, 0.02
    soft = 3.0 * fw / half
    inside = band(x - i, 0.07, 0.93, soft) * band(y - j, 0.07, 0.93, soft)
    p = CHART[6 * j + i]
    return blend((0.02, 0.02, 0.02), (p[0], p[1], p[2]), inside)


@kernel
def ink(u, v, seed, line, fw):
    """Coverage of rows of lettering `line` metres apart."""
    row = math.floor(v / line)
    y = v / line - row
    letter = u / (0.5 * line)
    i = math.floor(letter)
    word = hash01(math.floor(letter / 5.0 + 3.0 * hash01(row, 1, seed)), row, seed + 1)
    on = 1.0 if hash01(i, row, seed + 2) > 0.18 and word > 0.12 else 0.0
    x = letter - i
    stroke = band(x, 0.15, 0.85, fw / line) * (0.55 + 0.45 * step(hash01(int(letter * 3.0), row, seed + 3), 0.5, 0.1))
    keep = visible(fw, 0.8 * line)
    return on * band(y, 0.25, 0.8, fw / line) * (stroke * keep + 0.45 * (1.0 - keep))


@kernel
def poster(m, un, vn, hu, hv, fw):
    """A framed print: a ground shading from A to B, overlapping shapes in strong colours, a title, a pale margin."""
    s = int(m[SEED])
    soft = fw / hu
    margin = band(un, -0.9, 0.9, soft) * band(vn, -0.93, 0.93, soft)
    x = un * hu / hv
    c = mix(m, A, B, 0.5 - 0.5 * vn + 0.25 * fbm2(x * 1.5, vn * 1.5, s, soft, 4))
    for k in range(7):
        cx = 1.5 * (hash01(k, 0, s) - 0.5)
        cy = 1.5 * (hash01(k, 1, s) - 0.4)
        r = 0.1 + 0.38 * hash01(k, 2, s) * hash01(k, 3, s) + 0.05
        a = 6.2832 * hash01(k, 9, s)
        dx = (x - cx) * math.cos(a) + (vn - cy) * math.sin(a)
        dy = -(x - cx) * math.sin(a) + (vn - cy) * math.cos(a)
        kind = int(3.0 * hash01(k, 4, s))
        if kind == 0:
            d = math.sqrt(dx * dx + dy * dy)
        elif kind == 1:
            d = max(abs(dx), 1.8 * abs(dy))
        else:
            d = max(0.9 * abs(dx) + 0.5 * dy, -dy)
        inside = 1.0 - step(d, r, soft)
        if hash01(k, 8, s) > 0.6:
            inside *= 1.0 - band(d, 0.55 * r, 0.75 * r, soft)
        shape = (hash01(k, 5, s) ** 1.5, hash01(k, 6, s) ** 1.5, hash01(k, 7, s) ** 1.5)
        c = blend(c, blend(shape, colour(m, C), 0.45), 0.9 * inside)
    title = (
        ink(un * hu, (vn + 0.72) * hv, s + 5, 0.16 * hv, fw) * band(vn, -0.86, -0.56, soft) * band(un, -0.7, 0.7, soft)
    )
    c = blend(c, (0.02, 0.02, 0.03), title)
    return blend((0.75, 0.72, 0.66), c, margin)


@kernel
def book(m, un, vn, hv, u, v, face, fw):
    """A bound book: cloth with bands and a title on the spine, page edges on top."""
    s = int(m[SEED])
    if face >= 4:
        leaves = 0.12 * math.sin(u * 2600.0) * visible(fw, 0.003)
        return 0.62 * (1.0 + leaves), 0.56 * (1.0 + leaves), 0.45 * (1.0 + leaves)
    soft = fw / hv
    c = shade(colour(m, A), 1.0 + 0.2 * fbm2(u / 0.02, v / 0.02, s, fw / 0.02, 3))
    low = -0.8 + 0.3 * hash01(1, 1, s)
    c = blend(c, colour(m, B), band(vn, low, low + 0.12, soft) + band(vn, 0.72, 0.78, soft))
    high = 0.2 + 0.3 * hash01(2, 1, s)
    if hash01(3, 1, s) > 0.4:
        c = blend(c, colour(m, C), band(vn, -0.25, high + 0.1, soft) * band(un, -0.8, 0.8, 0.2))
    title = ink(v, u, s + 2, 0.014 + 0.012 * hash01(4, 1, s), fw) * band(vn, -0.2, high, soft)
    return blend(c, colour(m, B), 0.9 * title)


@kernel
def page(m, u, v, un, vn, fw):
    """A newspaper or magazine: columns of print, a headline, a picture."""
    s = int(m[SEED])
    c = shade(colour(m, A), 1.0 + 0.08 * fbm2(u / 0.05, v / 0.05, s, fw / 0.05, 3))
    column = math.floor((un + 1.0) * 1.5)
    inside = band((un + 1.0) * 1.5 - column, 0.06, 0.94, 0.03) * band(vn, -0.92, 0.62, 0.03)
    text = ink(u, v, s + 7 * column, m[SCALE], fw) * inside
    head = ink(u, v - 0.003, s + 3, 3.4 * m[SCALE], fw) * band(vn, 0.68, 0.9, 0.03) * band(un, -0.9, 0.9, 0.03)
    c = blend(c, (0.03, 0.03, 0.035), 0.85 * max(text, head))
    px = 0.5 * (hash01(1, 2, s) - 0.5)
    picture = band(un, px - 0.05, px + 0.6, 0.03) * band(vn, -0.4, 0.25, 0.03)
    tone = 0.5 + 0.6 * fbm2(un * 3.0, vn * 3.0, s + 9, fw / 0.1, 4)
    return blend(c, mix(m, B, C, tone), picture)


@kernel
def carton(m, u, v, un, vn, fw):
    """A cardboard box: tape along the middle, a printed label, creases."""
    s = int(m[SEED])
    n = fbm2(u / 0.1, v / 0.04, s, fw / 0.04, 5)
    c = shade(colour(m, A), 1.0 + 0.14 * n + 0.06 * math.sin(v * 700.0) * visible(fw, 0.006))
    soft = 0.02
    c = blend(c, colour(m, B), 0.75 * band(un, -0.14, 0.14, soft))
    x0 = -0.8 + 0.7 * hash01(1, 1, s)
    y0 = -0.7 + 0.7 * hash01(2, 1, s)
    label = band(un, x0, x0 + 0.7, soft) * band(vn, y0, y0 + 0.6, soft)
    paper = blend((0.7, 0.69, 0.65), colour(m, C), band(vn, y0 + 0.42, y0 + 0.6, soft))
    paper = blend(paper, (0.03, 0.03, 0.03), ink(u, v, s + 4, 0.022, fw) * band(vn, y0 + 0.05, y0 + 0.38, soft))
    return blend(c, paper, label)


@kernel
def rug(m, un, vn, hu, hv, u, v, fw):
    """A knotted rug: borders inside borders, a medallion, mirrored ornament, pile."""
    s = int(m[SEED])
    w = m[SCALE]
    x = abs(u)
    y = abs(v)
    inset = min(hu - x, hv - y)
    soft = fw
    ornament = value2(x / w, y / w, s) + 0.6 * value2(2.1 * x / w, 2.1 * y / w, s + 1)
    c = mix(m, A, B, step(ornament, 0.18, soft / w))
    c = blend(c, colour(m, C), band(ornament, -0.62, -0.38, soft / w))
    d = math.sqrt((x / hu) ** 2 + (y / hv) ** 2)
    petal = d + 0.06 * math.cos(12.0 * math.atan2(y, x))
    c = blend(c, mix(m, B, A, step(ornament, 0.0, soft / w)), 1.0 - step(petal, 0.42, soft / hu))
    c = blend(c, colour(m, C), band(petal, 0.4, 0.45, soft / hu))
    key = 0.5 + 0.5 * math.sin(6.2832 * (x + y) / (0.6 * w))
    c = blend(c, mix(m, C, A, step(key, 0.5, 2.0 * soft / w)), band(inset, 0.03, 0.1 + 0.05 * w, soft))
    c = blend(c, colour(m, B), band(inset, 0.0, 0.03, soft) + band(inset, 0.12 + 0.05 * w, 0.14 + 0.05 * w, soft))
    pile = 0.22 * value2(u / 0.008, v / 0.008, s + 3) * visible(fw, 0.008) + 0.18 * fbm2(
        u / 0.2, v / 0.2, s + 4, fw / 0.2, 5
    )
    return shade(c, 1.0 + pile)


@kernel
def globe(m, x, y, z, r, vn, un, fw):
    """Land and sea with a graticule; x y z on a sphere of radius r."""
    s = int(m[SEED])
    n = fbm3(1.8 * x / r, 1.8 * y / r, 1.8 * z / r, s, 1.8 * fw / r, 5)
    land = step(n, 0.08, 0.02 + fw / r)
    c = blend(mix(m, A, A, 0.0), mix(m, B, C, 0.5 + 1.6 * n), land)
    lines = band(abs(math.sin(9.4248 * un)), -1.0, 0.07, fw / r) + band(abs(math.sin(4.7124 * vn)), -1.0, 0.05, fw / r)
    return blend(c, (0.05, 0.05, 0.05), 0.5 * lines)


@kernel
def ball(m, un, vn, fw, r):
    """Sectors of three colours and a cap."""
    soft = fw / r
    x = 1.5 * (un + 1.0)
    i = math.floor(x * 2.0) % 3
    c = colour(m, A) if i == 0 else (colour(m, B) if i == 1 else colour(m, C))
    edge = x * 2.0 - math.floor(x * 2.0)
    c = blend((0.7, 0.7, 0.68), c, band(edge, 0.03, 0.97, soft))
    return blend(c, (0.72, 0.72, 0.7), step(abs(vn), 0.93, soft))


@kernel
def keys(m, u, v, fw):
    """A grid of keys, drawers or vents."""
    w = m[SCALE]
    i = math.floor(u / w)
    j = math.floor(v / w)
    inside = band(u / w - i, 0.1, 0.9, fw / w) * band(v / w - j, 0.12, 0.88, fw / w)
    c = mix(m, A, B, inside)
    lit = step(hash01(i, j, int(m[SEED])), 0.86, 0.01) * inside
    return blend(c, colour(m, C), lit)


@kernel
def outdoors(m, un, vn, hu, hv, fw):
    """Outdoors, blurred: sky, a hillside of trees, a house front."""
    s = int(m[SEED])
    x = un * hu / 0.4
    sky = mix(m, A, B, 0.5 + 0.6 * vn + 0.35 * fbm2(x * 1.2, vn * 2.0, s, 0.05, 4))
    ridge = -0.05 + 0.3 * value2(x * 1.1, 0.0, s + 1) + 0.12 * value2(x * 4.0, 0.0, s + 2)
    trees = shade(colour(m, C), 0.7 + 0.9 * fbm2(x * 6.0, vn * 6.0, s + 3, 0.05, 4) + 0.3 * (vn + 1.0))
    c = blend(sky, trees, 1.0 - step(vn, ridge, 0.06))
    hx = 1.4 * (hash01(1, 1, s) - 0.5)
    house = band(un, hx - 0.35, hx + 0.35, 0.04) * (1.0 - step(vn, -0.15, 0.04))
    x = 5.0 * un - math.floor(5.0 * un)
    y = 6.0 * vn - math.floor(6.0 * vn)
    panes = band(x, 0.3, 0.7, 0.1) * band(y, 0.25, 0.75, 0.1)
    return blend(c, blend((0.42, 0.34, 0.27), (0.1, 0.12, 0.15), panes), house)


@kernel
def clock(m, un, vn, fw, r):
    """A dial with hour marks and two hands."""
    s = int(m[SEED])
    d = math.sqrt(un * un + vn * vn)
    a = math.atan2(un, vn)
    soft = fw / r
    c = colour(m, A)
    mark = band(math.cos(12.0 * a), 0.8, 2.0, 0.2) * band(d, 0.72, 0.86, soft)
    hour = 6.2832 * hash01(1, 1, s)
    minute = 6.2832 * hash01(2, 1, s)
    for k in range(2):
        angle = hour if k == 0 else minute
        along = un * math.sin(angle) + vn * math.cos(angle)
        across = abs(un * math.cos(angle) - vn * math.sin(angle))
        hand = band(along, -0.08, 0.45 if k == 0 else 0.7, soft) * (1.0 - step(across, 0.05 if k == 0 else 0.03, soft))
        mark = max(mark, hand)
    c = blend(c, colour(m, B), mark)
    return blend(c, colour(m, C), step(d, 0.93, soft))


@kernel
def leaf(m, un, vn, u, v, fw):
    """A leaf blade with a midrib and side veins."""
    s = int(m[SEED])
    vein = step(abs(math.sin(14.0 * vn + 9.0 * abs(un))), 0.93, 0.1) * visible(fw, 0.012)
    n = fbm2(u / 0.03, v / 0.03, s, fw / 0.03, 3)
    return shade(mix(m, A, B, 0.4 + 0.5 * n + 0.5 * vein), 1.0 + 0.15 * n)
