"""Rays against boxes, ellipsoids and tapered cylinders, with a bounding volume hierarchy in between.

A primitive is one row of 18 numbers: centre (3), world-to-local rotation (9), half sizes (3), taper, shape, material.
The room itself is primitive 0, a box seen from inside. It is not part of the hierarchy and casts no shadow, so light
may come from beyond its walls.
"""

import math

import numpy as np

from fujinsplat.demo.jit import kernel

BOX, ELLIPSOID, CYLINDER = 0, 1, 2
CENTRE, ROTATION, HALF, TAPER, SHAPE, MATERIAL = 0, 3, 12, 15, 16, 17
WIDTH = 18
FAR = 1e9
NEAR = 1e-6


def bounds(prims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World boxes around primitives `[n, 18]`: low and high corners `[n, 3]`."""
    rotation = prims[:, ROTATION : ROTATION + 9].reshape(-1, 3, 3)
    half = prims[:, HALF : HALF + 3].copy()
    widest = np.maximum(1.0, prims[:, TAPER])
    cylinder = prims[:, SHAPE] == CYLINDER
    half[cylinder, :2] *= widest[cylinder, None]
    linear = np.einsum("nij,ni->nj", np.abs(rotation), half)  # boxes and cylinders: the box around them
    round_ = np.sqrt(np.einsum("nij,ni->nj", rotation**2, half**2))
    extent = np.where((prims[:, SHAPE] == ELLIPSOID)[:, None], round_, linear) + 1e-5
    centre = prims[:, CENTRE : CENTRE + 3]
    return centre - extent, centre + extent


def _split(items: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, int]:
    """The cut with the least expected work: each side's surface times its number of items, over all three axes."""
    best, chosen = np.inf, (items, len(items) // 2)
    for axis in range(3):
        ranked = items[np.argsort(low[items, axis] + high[items, axis], kind="stable")]
        surfaces = []
        for order in (ranked, ranked[::-1]):
            size = np.maximum.accumulate(high[order]) - np.minimum.accumulate(low[order])
            surfaces.append(size[:, 0] * size[:, 1] + size[:, 1] * size[:, 2] + size[:, 2] * size[:, 0])
        count = np.arange(1, len(items))
        cost = surfaces[0][:-1] * count + surfaces[1][:-1][::-1] * count[::-1]
        cut = int(np.argmin(cost))
        if cost[cut] < best:
            best, chosen = cost[cut], (ranked, cut + 1)
    return chosen


def hierarchy(prims: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A depth-first hierarchy over primitives 1..n-1, for traversal without a stack.

    Gives node boxes `[m, 6]`, links `[m, 3]` (next node when missed, first item, item count) and the order of items.
    """
    low, high = bounds(prims)
    boxes, links, order = [], [], []

    def build(items: np.ndarray) -> None:
        me = len(boxes)
        boxes.append(np.concatenate([low[items].min(0), high[items].max(0)]))
        links.append([0, len(order), 0])
        if len(items) <= 1:
            links[me][2] = len(items)
            order.extend(int(i) for i in items)
        else:
            ranked, cut = _split(items, low, high)
            build(ranked[:cut])
            build(ranked[cut:])
        links[me][0] = len(boxes)

    build(np.arange(1, len(prims)))
    return np.array(boxes, np.float64), np.array(links, np.int64), np.array(order, np.int64)


@kernel
def _meet_box(p, ox, oy, oz, dx, dy, dz):
    """Distances where a local ray enters and leaves the box."""
    near = -FAR
    far = FAR
    for axis in range(3):
        o = ox if axis == 0 else (oy if axis == 1 else oz)
        d = dx if axis == 0 else (dy if axis == 1 else dz)
        h = p[HALF + axis]
        if abs(d) < 1e-12:
            if abs(o) > h:
                return FAR, -FAR
        else:
            a = (-h - o) / d
            b = (h - o) / d
            if a > b:
                a, b = b, a
            near = max(near, a)
            far = min(far, b)
    return near, far


@kernel
def _meet_ellipsoid(p, ox, oy, oz, dx, dy, dz):
    ax, ay, az = 1.0 / p[HALF], 1.0 / p[HALF + 1], 1.0 / p[HALF + 2]
    ox, oy, oz = ox * ax, oy * ay, oz * az
    dx, dy, dz = dx * ax, dy * ay, dz * az
    a = dx * dx + dy * dy + dz * dz
    b = ox * dx + oy * dy + oz * dz
    c = ox * ox + oy * oy + oz * oz - 1.0
    root = b * b - a * c
    if root < 0.0:
        return FAR, -FAR
    root = math.sqrt(root)
    return (-b - root) / a, (-b + root) / a


@kernel
def _meet_cylinder(p, ox, oy, oz, dx, dy, dz):
    """A capped, tapered, elliptic cylinder about local z: radius 1 at the bottom, `taper` at the top, in half sizes."""
    ax, ay, h = 1.0 / p[HALF], 1.0 / p[HALF + 1], p[HALF + 2]
    ox, oy, dx, dy = ox * ax, oy * ay, dx * ax, dy * ay
    slope = (p[TAPER] - 1.0) / (2.0 * h)
    r0 = 1.0 + slope * (oz + h)
    r1 = slope * dz
    # the slab between the caps first; a convex body is where both intervals overlap
    if abs(dz) < 1e-12:
        if abs(oz) > h:
            return FAR, -FAR
        near, far = -FAR, FAR
    else:
        near = (-h - oz) / dz
        far = (h - oz) / dz
        if near > far:
            near, far = far, near
    a = dx * dx + dy * dy - r1 * r1
    b = ox * dx + oy * dy - r0 * r1
    c = ox * ox + oy * oy - r0 * r0
    if abs(a) < 1e-12:
        if c > 0.0:
            return FAR, -FAR
        return near, far
    root = b * b - a * c
    if root < 0.0:
        return FAR, -FAR
    root = math.sqrt(root)
    t0 = (-b - root) / a
    t1 = (-b + root) / a
    if a > 0.0:
        return max(near, t0), min(far, t1)
    # steeper than the flank: inside is outside the two roots; keep the part on the true nappe within the caps
    if t0 > t1:
        t0, t1 = t1, t0
    if r0 + r1 * (0.5 * (near + min(far, t0))) > 0.0 and near < t0:
        return near, min(far, t0)
    return max(near, t1), far


@kernel
def meet(p, ox, oy, oz, dx, dy, dz):
    """The nearest distance beyond NEAR at which a world ray meets the primitive's surface, or FAR."""
    x, y, z = ox - p[0], oy - p[1], oz - p[2]
    lx = p[3] * x + p[4] * y + p[5] * z
    ly = p[6] * x + p[7] * y + p[8] * z
    lz = p[9] * x + p[10] * y + p[11] * z
    ex = p[3] * dx + p[4] * dy + p[5] * dz
    ey = p[6] * dx + p[7] * dy + p[8] * dz
    ez = p[9] * dx + p[10] * dy + p[11] * dz
    if p[SHAPE] == 0.0:
        near, far = _meet_box(p, lx, ly, lz, ex, ey, ez)
    elif p[SHAPE] == 1.0:
        near, far = _meet_ellipsoid(p, lx, ly, lz, ex, ey, ez)
    else:
        near, far = _meet_cylinder(p, lx, ly, lz, ex, ey, ez)
    if near > far or far < NEAR:
        return FAR
    return near if near > NEAR else far


@kernel
def trace(prims, boxes, links, order, ox, oy, oz, dx, dy, dz, limit, first_only):
    """The nearest primitive along a ray and its distance; with `first_only`, any that lies nearer than `limit`.

    Gives (-1, limit) when nothing does. The room is left out.
    """
    best = limit
    hit = -1
    ix = 1.0 / dx if abs(dx) > 1e-12 else 1e12
    iy = 1.0 / dy if abs(dy) > 1e-12 else 1e12
    iz = 1.0 / dz if abs(dz) > 1e-12 else 1e12
    node = 0
    count = boxes.shape[0]
    while node < count:
        a = (boxes[node, 0] - ox) * ix
        b = (boxes[node, 3] - ox) * ix
        near = min(a, b)
        far = max(a, b)
        a = (boxes[node, 1] - oy) * iy
        b = (boxes[node, 4] - oy) * iy
        near = max(near, min(a, b))
        far = min(far, max(a, b))
        a = (boxes[node, 2] - oz) * iz
        b = (boxes[node, 5] - oz) * iz
        near = max(near, min(a, b))
        far = min(far, max(a, b))
        if near > far or far < 0.0 or near > best:
            node = links[node, 0]
            continue
        for k in range(links[node, 1], links[node, 1] + links[node, 2]):
            item = order[k]
            t = meet(prims[item], ox, oy, oz, dx, dy, dz)
            if t < best:
                best = t
                hit = item
                if first_only:
                    return hit, best
        node = links[node, 0] if links[node, 2] > 0 else node + 1
    return hit, best


@kernel
def surface(p, x, y, z):
    """At a world point on the primitive: outward world normal, coordinates for its texture (see `materials.albedo`)."""
    wx, wy, wz = x - p[0], y - p[1], z - p[2]
    lx = p[3] * wx + p[4] * wy + p[5] * wz
    ly = p[6] * wx + p[7] * wy + p[8] * wz
    lz = p[9] * wx + p[10] * wy + p[11] * wz
    hx, hy, hz = p[HALF], p[HALF + 1], p[HALF + 2]
    nx, ny, nz = 0.0, 0.0, 0.0
    face = -1
    if p[SHAPE] == 0.0:
        fx, fy, fz = hx - abs(lx), hy - abs(ly), hz - abs(lz)
        if fx <= fy and fx <= fz:
            nx = 1.0 if lx > 0.0 else -1.0
            face = 1 if lx > 0.0 else 0
            u, v, hu, hv = ly, lz, hy, hz
        elif fy <= fz:
            ny = 1.0 if ly > 0.0 else -1.0
            face = 3 if ly > 0.0 else 2
            u, v, hu, hv = lx, lz, hx, hz
        else:
            nz = 1.0 if lz > 0.0 else -1.0
            face = 5 if lz > 0.0 else 4
            u, v, hu, hv = lx, ly, hx, hy
        un, vn = u / hu, v / hv
    elif p[SHAPE] == 1.0:
        nx, ny, nz = lx / (hx * hx), ly / (hy * hy), lz / (hz * hz)
        un = math.atan2(ly / hy, lx / hx) / math.pi
        vn = min(max(lz / hz, -1.0), 1.0)
        hu, hv = hx, hz
        u, v = un * math.pi * hx, math.asin(vn) * hz
    else:
        qx, qy = lx / hx, ly / hy
        slope = (p[TAPER] - 1.0) / (2.0 * hz)
        r = math.sqrt(qx * qx + qy * qy)
        side = abs(r - (1.0 + slope * (lz + hz))) * hx
        if hz - abs(lz) < side:
            nz = 1.0 if lz > 0.0 else -1.0
            u, v, un, vn, hu, hv = lx, ly, qx, qy, hx, hy
            face = 2  # a dial or a lid carries its picture on the cap
        else:
            nx, ny, nz = qx / (r * hx), qy / (r * hy), -slope
            un = math.atan2(qy, qx) / math.pi
            vn = lz / hz
            hu, hv = hx * math.pi, hz
            u, v = un * hu, lz
    # local to world: the transpose
    gx = p[3] * nx + p[6] * ny + p[9] * nz
    gy = p[4] * nx + p[7] * ny + p[10] * nz
    gz = p[5] * nx + p[8] * ny + p[11] * nz
    length = math.sqrt(gx * gx + gy * gy + gz * gz)
    return gx / length, gy / length, gz / length, u, v, un, vn, hu, hv, lx, ly, lz, face
