"""Putting a found scene upright and to a usable size: structure from motion knows neither up nor metres.

Photographers hold their cameras level far better than they hold them horizontal, so "up" is what is at right angles to
all cameras' horizontal axes; where those do not decide it (all views from one side), the cameras' mean up does.
Portraits whose orientation tag is lost lie by a quarter turn: the way up that most cameras agree on holds for all. The
scene's axes become those of a camera that stands upright: x right, y down, z forward, which is how 3DGS viewers take a
PLY file.
"""

from dataclasses import dataclass

import numpy as np

STARTS = 40  # cameras whose own up is tried where not all agree
ROUNDS = 5  # in which ways up and quarter turns settle
PULL = 0.1  # weight of the cameras' mean up against their horizontal axes


@dataclass(frozen=True)
class Similarity:
    """new = scale * rotation @ old + translation; `depth` is the median distance from cameras to points, old units."""

    scale: float
    rotation: np.ndarray
    translation: np.ndarray
    depth: float

    def scaled_to(self, depth: float) -> "Similarity":
        """With the median distance between cameras and points at `depth`."""
        factor = depth / (self.scale * self.depth)
        return Similarity(self.scale * factor, self.rotation, self.translation * factor, self.depth)


def up_direction(viewmats: np.ndarray, turns: np.ndarray | None = None) -> np.ndarray:
    """The unit vector [3] that points up, from world-to-camera matrices [V, 4, 4] and the quarter turns
    counter-clockwise that bring each picture upright (none: they are)."""
    turns = np.zeros(len(viewmats)) if turns is None else turns
    ups = _axes(viewmats, turns)[1]
    length = np.linalg.norm(ups.mean(0))
    if length < 0.1:  # cameras in every attitude: there is no telling
        return np.array([0.0, -1.0, 0.0])
    best, most = None, -1
    for start in (_across(viewmats, turns), *ups[:: -(-len(ups) // STARTS)]):
        found, agree = _settled(viewmats, turns, start)
        if agree > most:
            best, most = found, agree
        if most == len(viewmats):
            break
    assert best is not None
    return best


def _settled(viewmats: np.ndarray, turns: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, int]:
    """The way up that the cameras have when each picture is turned by quarters to stand as nearly along `up` as it
    can, and how many need no turn."""
    more = np.zeros(len(viewmats))
    for _ in range(ROUNDS):
        rights, ups = _axes(viewmats, turns)
        before, more = more, np.round(np.arctan2(rights @ up, ups @ up) / (np.pi / 2)) % 4
        up = _across(viewmats, turns + more)
        if (before == more).all():
            break
    return up, int((more == 0).sum())


def _axes(viewmats: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upright pictures' right and up in the world, [V, 3] each."""
    # a picture that is turned by k quarters has its upright axes turned back by as much
    angle = turns * (np.pi / 2)
    right = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    up = np.stack([np.sin(angle), -np.cos(angle), 0 * angle], -1)
    rotations = viewmats[:, :3, :3]
    return np.einsum("vji,vj->vi", rotations, right), np.einsum("vji,vj->vi", rotations, up)


def _across(viewmats: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """The unit vector [3] at right angles to all upright pictures' right, as nearly as can be."""
    rights, ups = _axes(viewmats, turns)
    mean = ups.mean(0)
    mean /= max(float(np.linalg.norm(mean)), 1e-9)
    spread = np.einsum("vi,vj->ij", rights, rights) / len(rights) + PULL * (np.eye(3) - np.outer(mean, mean))
    found = np.linalg.eigh(spread)[1][:, 0]
    return found if found @ mean > 0 else -found


def upright_turn(viewmats: np.ndarray) -> np.ndarray:
    """The smallest rotation [3, 3] of the world that brings cameras [V, 4, 4] of upright pictures upright: their up
    becomes -y."""
    return turn_to(up_direction(viewmats), np.array([0.0, -1.0, 0.0]))


def turn_to(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes unit vector `start` to `end`."""
    axis, cosine = np.cross(start, end), float(start @ end)
    if cosine < -1 + 1e-9:  # opposite: half a turn about any axis across
        across = np.cross(start, [1.0, 0, 0] if abs(start[0]) < 0.9 else [0, 1.0, 0])
        across /= np.linalg.norm(across)
        return 2 * np.outer(across, across) - np.eye(3)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1 + cosine)


def levelled(poses: dict[str, np.ndarray], points: np.ndarray, turns: dict[str, int]) -> Similarity:
    """Upright, looking forward on average, its middle at the origin. `poses` are world to camera [4, 4] by stem,
    `points` [N, 3]."""
    viewmats = np.stack(list(poses.values()))
    down = -up_direction(viewmats, np.array([turns.get(stem, 0) for stem in poses]))
    forward = viewmats[:, 2, :3].mean(0)
    forward -= (forward @ down) * down
    if np.linalg.norm(forward) < 1e-3:  # cameras all around: any horizontal direction will do
        forward = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
    forward /= np.linalg.norm(forward)
    rotation = np.stack([np.cross(down, forward), down, forward])
    centres = -np.einsum("vji,vj->vi", viewmats[:, :3, :3], viewmats[:, :3, 3])
    middle = np.median(points, axis=0) if len(points) else centres.mean(0)
    distances = np.linalg.norm(points[None] - centres[:, None], axis=-1) if len(points) else np.ones(1)
    return Similarity(1.0, rotation, -rotation @ middle, float(np.median(distances)) or 1.0)
