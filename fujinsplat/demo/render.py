"""Light: what each ray of a picture sees, in linear sRGB radiance.

Direct light from one distant source and one lamp, both with soft shadows; everything else from a coarse grid that holds
how much light arrives at a point from six directions, gathered once per room with one bounce.
"""

import math
from dataclasses import dataclass

import numpy as np

from fujinsplat.demo.geometry import CENTRE, FAR, HALF, MATERIAL, hierarchy, meet, surface, trace
from fujinsplat.demo.jit import kernel
from fujinsplat.demo.materials import EMISSION, GLOSS, SHININESS, albedo

SPACING = 0.28
EPSILON = 1e-4
PAD = 2  # samples around the picture that the lens filter needs


@dataclass(frozen=True)
class World:
    """A room ready for rays.

    `lights [2, 5, 3]`: four directions towards the distant light's disc, then its colour; four positions in the lamp,
    then its colour. `grid [nx, ny, nz, 6, 3]` is irradiance from six sides, `weight` its validity.
    """

    prims: np.ndarray
    boxes: np.ndarray
    links: np.ndarray
    order: np.ndarray
    materials: np.ndarray
    lights: np.ndarray
    low: np.ndarray
    step: np.ndarray
    grid: np.ndarray
    weight: np.ndarray

    @property
    def arrays(self):
        return (self.prims, self.boxes, self.links, self.order, self.materials, self.lights)

    @property
    def ambient(self):
        return (self.low, self.step, self.grid, self.weight)

    @property
    def high(self) -> np.ndarray:
        return self.low + self.step * (np.array(self.weight.shape) - 1)


@dataclass(frozen=True)
class Camera:
    """A pinhole: `position [3]`, `rotation [3, 3]` with columns right, down, forward in the world, `focal` pixels."""

    position: np.ndarray
    rotation: np.ndarray
    focal: float
    width: int
    height: int


@kernel
def _direct(prims, boxes, links, order, lights, which, x, y, z, nx, ny, nz):
    """Direct irradiance over pi (r, g, b) and the direction of the distant light, sample `which` of four."""
    lx, ly, lz = lights[0, which, 0], lights[0, which, 1], lights[0, which, 2]
    r = g = b = 0.0
    lit = nx * lx + ny * ly + nz * lz
    if lit > 0.0:
        hit, _ = trace(prims, boxes, links, order, x, y, z, lx, ly, lz, FAR, True)
        if hit >= 0:
            lit = 0.0
        else:
            r += lit * lights[0, 4, 0]
            g += lit * lights[0, 4, 1]
            b += lit * lights[0, 4, 2]
    else:
        lit = 0.0
    dx, dy, dz = lights[1, which, 0] - x, lights[1, which, 1] - y, lights[1, which, 2] - z
    d2 = dx * dx + dy * dy + dz * dz
    d = math.sqrt(d2)
    cosine = (nx * dx + ny * dy + nz * dz) / d
    fall = cosine / (0.15 + d2)
    if fall * lights[1, 4, 1] > 0.004:  # what is fainter than that is not worth a shadow ray
        # stop short of the lamp itself, whose bulb and shade would shadow it
        hit, _ = trace(prims, boxes, links, order, x, y, z, dx / d, dy / d, dz / d, d - 0.22, True)
        if hit < 0:
            r += fall * lights[1, 4, 0]
            g += fall * lights[1, 4, 1]
            b += fall * lights[1, 4, 2]
    return r, g, b, lit, lx, ly, lz


@kernel
def _ambient(low, step, grid, weight, x, y, z, nx, ny, nz):
    """Irradiance over pi from the grid at a point, for a normal: trilinear over the valid nodes, six directions."""
    gx = min(max((x - low[0]) / step[0], 0.0), grid.shape[0] - 1.001)
    gy = min(max((y - low[1]) / step[1], 0.0), grid.shape[1] - 1.001)
    gz = min(max((z - low[2]) / step[2], 0.0), grid.shape[2] - 1.001)
    i, j, k = int(gx), int(gy), int(gz)
    fx, fy, fz = gx - i, gy - j, gz - k
    ax = 1 if nx > 0.0 else 0
    ay = 3 if ny > 0.0 else 2
    az = 5 if nz > 0.0 else 4
    wx, wy, wz = nx * nx, ny * ny, nz * nz
    r = g = b = total = 0.0
    for c in range(8):
        a0, a1, a2 = c & 1, (c >> 1) & 1, c >> 2
        w = (fx if a0 else 1.0 - fx) * (fy if a1 else 1.0 - fy) * (fz if a2 else 1.0 - fz)
        w *= weight[i + a0, j + a1, k + a2]
        cell = grid[i + a0, j + a1, k + a2]
        r += w * (wx * cell[ax, 0] + wy * cell[ay, 0] + wz * cell[az, 0])
        g += w * (wx * cell[ax, 1] + wy * cell[ay, 1] + wz * cell[az, 1])
        b += w * (wx * cell[ax, 2] + wy * cell[ay, 2] + wz * cell[az, 2])
        total += w
    total = max(total, 1e-9)
    return r / total, g / total, b / total


@kernel
def _nearest(prims, boxes, links, order, ox, oy, oz, dx, dy, dz):
    """The primitive a ray meets first, the room included, and its distance."""
    wall = meet(prims[0], ox, oy, oz, dx, dy, dz)
    hit, t = trace(prims, boxes, links, order, ox, oy, oz, dx, dy, dz, wall, False)
    return max(hit, 0), t


@kernel
def gather(prims, boxes, links, order, materials, lights, low, step, grid, weight, rays):
    """Fill the grid: from each node, `rays [n, 3]` directions, the light that comes back from what they meet."""
    base = 0.14  # light of later bounces
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            for k in range(grid.shape[2]):
                ox, oy, oz = low[0] + i * step[0], low[1] + j * step[1], low[2] + k * step[2]
                inside = 0
                for ray in range(rays.shape[0]):
                    dx, dy, dz = rays[ray, 0], rays[ray, 1], rays[ray, 2]
                    hit, t = _nearest(prims, boxes, links, order, ox, oy, oz, dx, dy, dz)
                    p = prims[hit]
                    x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
                    nx, ny, nz, u, v, un, vn, hu, hv, lx, ly, lz, face = surface(p, x, y, z)
                    if hit == 0:
                        nx, ny, nz = -nx, -ny, -nz
                    elif nx * dx + ny * dy + nz * dz > 0.0:
                        inside += 1
                        continue
                    m = materials[int(p[MATERIAL]) + (face if hit == 0 else 0)]
                    ar, ag, ab = albedo(m, u, v, un, vn, hu, hv, lx, ly, lz, face, 0.12)
                    e = 1e-3
                    r, g, b, _, _, _, _ = _direct(
                        prims, boxes, links, order, lights, ray & 3, x + e * nx, y + e * ny, z + e * nz, nx, ny, nz
                    )
                    glow = m[EMISSION]
                    r = ar * (r + base + glow)
                    g = ag * (g + base + glow)
                    b = ab * (b + base + glow)
                    for axis in range(3):
                        d = dx if axis == 0 else (dy if axis == 1 else dz)
                        side = 2 * axis + (1 if d > 0.0 else 0)
                        grid[i, j, k, side, 0] += abs(d) * r
                        grid[i, j, k, side, 1] += abs(d) * g
                        grid[i, j, k, side, 2] += abs(d) * b
                # directions spread evenly: the mean of |d| over one side's hemisphere is a half
                grid[i, j, k] *= 4.0 / rays.shape[0]
                weight[i, j, k] = 1.0 if inside < 0.15 * rays.shape[0] else 1e-4


@kernel
def picture(
    prims, boxes, links, order, materials, lights, low, step, grid, weight, pose, rotation, focal, size, ss, pad
):
    """Radiance `[h, w, 3]` and z-depth `[h, w]` of a picture of `size` (width, height), `ss` samples a pixel side.

    `pad` samples are added on every side, for the lens filter. Samples of a 2x2 block look at different parts of the
    lights, so that one pixel sees soft shadows without noise.
    """
    w = int(size[0] * ss + 0.5) + 2 * pad
    h = int(size[1] * ss + 0.5) + 2 * pad
    radiance = np.empty((h, w, 3), np.float32)
    depth = np.empty((h, w), np.float32)
    ox, oy, oz = pose[0], pose[1], pose[2]
    spread = 1.0 / (focal * ss)
    for row in range(h):
        for column in range(w):
            a = ((column - pad + 0.5) / ss - 0.5 * size[0]) / focal
            c = ((row - pad + 0.5) / ss - 0.5 * size[1]) / focal
            dx = rotation[0, 0] * a + rotation[0, 1] * c + rotation[0, 2]
            dy = rotation[1, 0] * a + rotation[1, 1] * c + rotation[1, 2]
            dz = rotation[2, 0] * a + rotation[2, 1] * c + rotation[2, 2]
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            dx, dy, dz = dx / length, dy / length, dz / length
            hit, t = _nearest(prims, boxes, links, order, ox, oy, oz, dx, dy, dz)
            p = prims[hit]
            x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
            nx, ny, nz, u, v, un, vn, hu, hv, lx, ly, lz, face = surface(p, x, y, z)
            m = materials[int(p[MATERIAL]) + (face if hit == 0 else 0)]
            facing = -(nx * dx + ny * dy + nz * dz)
            if facing < 0.0:
                nx, ny, nz, facing = -nx, -ny, -nz, -facing
            fw = t * spread / max(math.sqrt(facing), 0.2)
            ar, ag, ab = albedo(m, u, v, un, vn, hu, hv, lx, ly, lz, face, fw)
            e = EPSILON
            which = (row & 1) * 2 + (column & 1)
            r, g, b, lit, ldx, ldy, ldz = _direct(
                prims, boxes, links, order, lights, which, x + e * nx, y + e * ny, z + e * nz, nx, ny, nz
            )
            s = 0.3 * step[0]
            sr, sg, sb = _ambient(low, step, grid, weight, x + s * nx, y + s * ny, z + s * nz, nx, ny, nz)
            glow = m[EMISSION]
            r = ar * (r + sr + glow)
            g = ag * (g + sg + glow)
            b = ab * (b + sb + glow)
            gloss = m[GLOSS]
            if gloss > 0.0:
                fresnel = gloss * (0.04 + 0.96 * (1.0 - facing) ** 5)
                # the mirror direction sees the grid; the distant light gives a highlight
                rx, ry, rz = dx + 2.0 * facing * nx, dy + 2.0 * facing * ny, dz + 2.0 * facing * nz
                mr, mg, mb = _ambient(low, step, grid, weight, x + s * nx, y + s * ny, z + s * nz, rx, ry, rz)
                shine = 0.0
                if lit > 0.0:
                    shine = max(rx * ldx + ry * ldy + rz * ldz, 0.0) ** m[SHININESS] * (0.12 * m[SHININESS]) * gloss
                    shine *= 0.06
                r += fresnel * mr + shine * lights[0, 4, 0]
                g += fresnel * mg + shine * lights[0, 4, 1]
                b += fresnel * mb + shine * lights[0, 4, 2]
            radiance[row, column, 0] = r
            radiance[row, column, 1] = g
            radiance[row, column, 2] = b
            depth[row, column] = t / length
    return radiance, depth


@kernel
def seen(prims, boxes, links, order, eye, points):
    """Which points `[n, 3]` are visible from `eye [3]`: nothing stands in between."""
    out = np.empty(points.shape[0], np.bool_)
    for n in range(points.shape[0]):
        dx, dy, dz = points[n, 0] - eye[0], points[n, 1] - eye[1], points[n, 2] - eye[2]
        d = math.sqrt(dx * dx + dy * dy + dz * dz)
        hit, _ = trace(prims, boxes, links, order, eye[0], eye[1], eye[2], dx / d, dy / d, dz / d, 0.995 * d, True)
        out[n] = hit < 0
    return out


def directions(count: int) -> np.ndarray:
    """Evenly spread unit vectors `[count, 3]` (a Fibonacci sphere)."""
    k = np.arange(count) + 0.5
    z = 1 - 2 * k / count
    angle = math.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], -1)


def prepare(prims: np.ndarray, materials: np.ndarray, lights: np.ndarray, spacing=SPACING, rays: int = 96) -> World:
    """A `World` from primitives, materials and lights: builds the hierarchy and gathers indirect light."""
    boxes, links, order = hierarchy(prims)
    low = prims[0, CENTRE : CENTRE + 3] - prims[0, HALF : HALF + 3]
    size = 2 * prims[0, HALF : HALF + 3]
    cells = np.maximum(np.round(size / spacing).astype(int), 3)
    step = size / cells
    nodes = cells  # at cell centres, so that no node lies in a wall
    grid = np.zeros((*nodes, 6, 3))
    weight = np.zeros(nodes)
    start = low + 0.5 * step
    gather(prims, boxes, links, order, materials, lights, start, step, grid, weight, directions(rays))
    return World(prims, boxes, links, order, materials, lights, start, step, grid, weight)


def look(world: World, camera: Camera, samples: float = 2, pad: int = PAD) -> tuple[np.ndarray, np.ndarray]:
    """Radiance `[h, w, 3]` (linear sRGB) and z-depth `[h, w]` at `samples` per pixel side, with `pad` extra around."""
    size = np.array([camera.width, camera.height], np.float64)
    return picture(
        *world.arrays, *world.ambient, camera.position, camera.rotation, float(camera.focal), size, float(samples), pad
    )


def focus(samples: np.ndarray, stride: int = 1) -> np.ndarray:
    """Through the lens onto photosites, one every `stride` samples; the PAD samples around the picture are used up.

    The filter is wider than a photosite, as a real lens with its anti-aliasing filter is, so the mosaic can be undone.
    """
    taps = {1: (1, 4, 6, 4, 1), 2: (1, 5, 10, 10, 5, 1)}[stride]
    total = np.float32(1 / sum(taps))
    rows, columns = samples.shape[0] - 2 * PAD, samples.shape[1] - 2 * PAD
    out = np.asarray(sum(np.float32(t) * samples[k : k + rows : stride] for k, t in enumerate(taps)) * total)
    return np.asarray(sum(np.float32(t) * out[:, k : k + columns : stride] for k, t in enumerate(taps)) * total)
