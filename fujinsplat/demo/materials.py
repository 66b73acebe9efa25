"""Materials: one row of numbers each, and the one function that gives the albedo of a surface point.

Row: kind, colour A, colour B, colour C (linear sRGB), scale [m], seed, gloss, shininess, emission, variation.
"""

import numpy as np

from fujinsplat.demo import prints, textures
from fujinsplat.demo.jit import kernel

KINDS = (
    "paint", "planks", "wood", "bricks", "tiles", "plaid", "stripes", "dots", "tufts", "stone", "terrazzo", "wicker",
    "wallpaper", "metal", "chart", "poster", "book", "page", "carton", "rug", "globe", "ball", "keys", "outdoors",
    "clock", "leaf",
)  # fmt: skip
KIND = {name: number for number, name in enumerate(KINDS)}
GLOSS, SHININESS, EMISSION = 12, 13, 14
WIDTH = 16

_paint, _planks, _wood, _bricks, _tiles, _plaid, _stripes, _dots, _tufts, _stone, _terrazzo, _wicker = range(12)
_wallpaper, _metal, _chart, _poster, _book, _page, _carton, _rug, _globe, _ball, _keys, _outdoors, _clock, _leaf = (
    range(12, 26)
)


def row(kind, a, b=None, c=None, scale=0.1, seed=0, gloss=0.0, shininess=30.0, emission=0.0, variation=0.15):
    """One material as `[16]` float64."""
    b = a if b is None else b
    c = b if c is None else c
    return np.array([KIND[kind], *a, *b, *c, scale, seed, gloss, shininess, emission, variation], np.float64)


@kernel
def albedo(m, u, v, un, vn, hu, hv, x, y, z, face, fw):
    """Linear sRGB albedo of material row `m`.

    `u, v` are surface coordinates in metres and `un, vn` the same over the face's half sizes `hu, hv`; `x, y, z` are
    the primitive's own coordinates in metres; `face` is 0..5 on a box (-x +x -y +y -z +z) and -1 on curved things.
    """
    kind = int(m[0])
    if kind == _paint:
        return textures.paint(m, u, v, fw)
    if kind == _planks:
        return textures.planks(m, u, v, fw)
    if kind == _wood:
        # the grain follows the longer side of the face
        return textures.wood(m, u, v, fw) if hu >= hv else textures.wood(m, v, u, fw)
    if kind == _bricks:
        return textures.bricks(m, u, v, fw)
    if kind == _tiles:
        return textures.tiles(m, u, v, fw)
    if kind == _plaid:
        return textures.plaid(m, u, v, fw)
    if kind == _stripes:
        return textures.stripes(m, u, v, fw)
    if kind == _dots:
        return textures.dots(m, u, v, fw)
    if kind == _tufts:
        return textures.tufts(m, u, v, fw)
    if kind == _stone:
        return textures.stone(m, x, y, z, fw)
    if kind == _terrazzo:
        return textures.terrazzo(m, u, v, fw)
    if kind == _wicker:
        return textures.wicker(m, u, v, fw)
    if kind == _wallpaper:
        return textures.wallpaper(m, u, v, fw)
    if kind == _metal:
        return textures.metal(m, u, v, fw)
    if kind == _book:
        return prints.book(m, un, vn, hv, u, v, face, fw)
    if kind == _carton:
        return prints.carton(m, u, v, un, vn, fw)
    if kind == _globe:
        return prints.globe(m, x, y, z, hu, vn, un, fw)
    if kind == _ball:
        return prints.ball(m, un, vn, fw, hu)
    if kind == _keys:
        return prints.keys(m, u, v, fw)
    if kind == _leaf:
        return prints.leaf(m, un, vn, u, v, fw)
    if kind == _rug:
        return prints.rug(m, un, vn, hu, hv, u, v, fw)
    if kind == _page:
        return prints.page(m, u, v, un, vn, fw)
    # pictures that only the front (-y) face carries; the other faces are plain
    if face != 2:
        return textures.colour(m, textures.C)
    if kind == _chart:
        return prints.chart(m, un, vn, fw, hu)
    if kind == _poster:
        return prints.poster(m, un, vn, hu, hv, fw)
    if kind == _outdoors:
        return prints.outdoors(m, un, vn, hu, hv, fw)
    return prints.clock(m, un, vn, fw, hu)
