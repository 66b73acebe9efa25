"""Poses and points from photographs alone: structure from motion by pycolmap on stretched views.

Features are sought in the smoke-stretched RAW, every pair of views is matched (beyond some hundreds: neighbours and
look-alikes), and the largest model counts, because the first one is often a stub of two or three views. What it leaves
out is tried once more on views with the smoke roughly cleared. With given poses only the points are made.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fujinsplat.capture.cameras import Camera
from fujinsplat.capture.frame import stored_size
from fujinsplat.capture.layout import FOLDERS, FOUND_POSES, View, find_scene, folded, has_poses, part_views
from fujinsplat.capture.lens import Lens, colmap_camera
from fujinsplat.capture.motion.level import Similarity, levelled
from fujinsplat.capture.motion.stretch import write_pictures
from fujinsplat.capture.poses import read_poses
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_folder, write_json
from fujinsplat.core.progress import say
from fujinsplat.core.settings import CaptureSettings, MotionSettings

FEWEST_POINTS = 20  # a model with fewer is no scene
FEWEST_VIEWS = 3


@dataclass
class Model:
    """A reconstruction and the pictures it was made from; `registered` are its views' stems."""

    reconstruction: Any
    pictures: dict[str, dict]
    cleared: bool
    registered: list[str] = field(default_factory=list)


def find_scene_poses(
    root: Path | str, name: str, out: Path, settings: MotionSettings, capture: CaptureSettings, threads: int = 1
) -> None:
    """What a scene lacks: poses and points, or points alone where it brings poses."""
    scene = find_scene(root, name)
    views = part_views(scene, "source")
    fewest, what = (2, "a scene") if has_poses(scene) else (FEWEST_VIEWS, "structure from motion")
    if len(views) < fewest:
        raise UserError(
            f"{scene.rgb_home / FOLDERS['source']} holds {'one view' if len(views) == 1 else f'{len(views)} views'}, "
            f"and {what} needs at least {fewest}; add photographs from other positions"
        )
    if not has_poses(scene):
        find_poses(views, out, settings, capture, threads)
        return
    cameras = list(read_poses(scene, stored_size(views[0])).source.values())
    find_points(views, cameras, out, settings, capture, threads)


def find_poses(
    views: Sequence[View],
    out: Path,
    settings: MotionSettings,
    capture: CaptureSettings,
    threads: int = 1,
) -> dict[str, Any]:
    """Poses, lenses and points of `views` into the folder `out`: a COLMAP model with the views' stems as names,
    levelled and scaled, and poses.json, which is also returned."""
    with tempfile.TemporaryDirectory(prefix="fujinsplat-") as scratch:
        model = _mapped(views, Path(scratch) / "stretched", settings, capture, threads, cleared=False)
        if len(model.registered) < len(views):
            say(f"{len(model.registered)} of {len(views)} views found their place; the others once more, cleared")
            again = _mapped(views, Path(scratch) / "cleared", settings, capture, threads, cleared=True)
            model = max(model, again, key=lambda m: len(m.registered))
        missing = sorted({view.stem for view in views} - set(model.registered))
        _refuse_too_few(len(model.registered), len(views), missing, capture)
        _rename(model)
        motion = levelled(_poses(model), _points(model), {s: model.pictures[s]["turns"] for s in model.registered})
        _apply(model.reconstruction, motion.scaled_to(settings.depth))
        about = _about(views, model, missing)
        _write(out, model.reconstruction, about)
    say(
        f"{about['registered']} of {about['views']} views have a pose, {about['points']} points, "
        f"{about['error']:.2f} pixels; " + "; ".join(f"{c['model']} {c['size']}" for c in about["cameras"])
    )
    for stem in missing:
        say(f"{stem} is left out: it shares too little with the other views")
    return about


def find_points(
    views: Sequence[View],
    cameras: Sequence[Camera],
    out: Path,
    settings: MotionSettings,
    capture: CaptureSettings,
    threads: int = 1,
) -> dict[str, Any]:
    """Points alone, triangulated from the smoky views with the poses and lenses of `cameras` as they are."""
    import pycolmap

    known = {folded(camera.stem): camera for camera in cameras}
    posed = [view for view in views if folded(view.stem) in known]
    with tempfile.TemporaryDirectory(prefix="fujinsplat-") as scratch:
        place = Path(scratch)
        shapes = {view.stem: known[folded(view.stem)].photograph for view in posed}
        pictures = write_pictures(posed, place / "pictures", capture, settings.side, threads, shapes=shapes)
        # a camera of its own for each view: given poses may carry one lens per frame
        database = _features(place, pictures, settings, threads, per_view=True)
        start = pycolmap.Reconstruction()
        by_name = {about["name"]: stem for stem, about in pictures.items()}
        with pycolmap.Database.open(str(database)) as opened:
            for image in opened.read_all_images():
                stem = by_name[image.name]
                camera = known[folded(stem)]
                lens = colmap_camera(_lens(camera).scaled(*pictures[stem]["size"]), image.camera_id)
                opened.update_camera(lens)
                start.add_camera_with_trivial_rig(lens)
                placed = pycolmap.Image(image_id=image.image_id, name=image.name, camera_id=image.camera_id)
                motion = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.viewmat[:3, :3]), camera.viewmat[:3, 3])
                start.add_image_with_trivial_frame(placed, motion)
        _match(database, pictures, settings, threads)
        (place / "points").mkdir()
        done = _triangulated(start, database, place, settings)
        if done.num_points3D() < FEWEST_POINTS:
            raise UserError(
                f"only {done.num_points3D()} points could be triangulated with the given poses; they do not fit these "
                "pictures: give the poses of these very files, or none, so that they are found"
            )
        model = Model(done, pictures, False, [view.stem for view in posed])
        _rename(model)
        about = _about(views, model, []) | {"given": True}
        _write(out, done, about)
    say(f"{about['points']} points triangulated from {len(posed)} views with their given poses")
    return about


def _mapped(views, place: Path, settings: MotionSettings, capture, threads: int, cleared: bool) -> Model:
    """The largest model of one attempt; one without registered views when there is none."""
    import pycolmap

    pictures = write_pictures(views, place / "pictures", capture, settings.side, threads, cleared)
    database = _features(place, pictures, settings, threads)
    _match(database, pictures, settings, threads)
    options = _mapping(settings)
    # small captures are scenes too: a model of three views counts when there are no more
    options.min_model_size = min(10, max(3, len(views) // 2))
    (place / "models").mkdir()
    say(f"structure from motion on {len(views)} {'cleared' if cleared else 'stretched'} views")
    with _quiet():
        models = pycolmap.incremental_mapping(str(database), str(place / "pictures"), str(place / "models"), options)
    best = max(models.values(), key=lambda m: (m.num_reg_images(), m.num_points3D()), default=None)
    if best is None:
        return Model(None, pictures, cleared)
    names = {best.images[number].name for number in best.reg_image_ids()}
    return Model(best, pictures, cleared, [stem for stem, about in pictures.items() if about["name"] in names])


def _lens(camera: Camera) -> Lens:
    if camera.lens is not None:
        return camera.lens
    params = camera.K[0, 0], camera.K[1, 1], camera.K[0, 2], camera.K[1, 2]
    return Lens("PINHOLE", camera.width, camera.height, tuple(float(p) for p in params))


def _features(
    place: Path, pictures: dict[str, dict], settings: MotionSettings, threads: int, per_view: bool = False
) -> Path:
    import pycolmap

    database = place / "features.db"
    extraction = pycolmap.FeatureExtractionOptions(num_threads=threads)
    extraction.sift.max_num_features = settings.features
    pycolmap.set_random_seed(settings.seed)
    names = sorted(about["name"] for about in pictures.values())
    mode = pycolmap.CameraMode.PER_IMAGE if per_view else pycolmap.CameraMode.PER_FOLDER
    lenses = pycolmap.ImageReaderOptions(camera_model=settings.camera_model)
    pycolmap.Database.open(str(database)).close()  # makes the file
    with _quiet():
        # numbered by name first: threads would number them in the order in which they happen to end
        pycolmap.import_images(str(database), str(place / "pictures"), mode, image_names=names, options=lenses)
        pycolmap.extract_features(
            str(database),
            str(place / "pictures"),
            image_names=names,
            camera_mode=mode,
            reader_options=lenses,
            extraction_options=extraction,
            device=pycolmap.Device.cpu,
        )
    if not per_view:
        _guess_focals(database, pictures)
    return database


def _guess_focals(database: Path, pictures: dict[str, dict]) -> None:
    """Each camera begins with the focal length its photographs name, where they do."""
    import pycolmap

    named = {about["name"]: about["focal"] for about in pictures.values() if about["focal"]}
    with pycolmap.Database.open(str(database)) as opened:
        guesses: dict[int, list[float]] = {}
        for image in opened.read_all_images():
            guesses.setdefault(image.camera_id, []).append(named.get(image.name, 0.0))
        for camera in opened.read_all_cameras():
            focals = guesses.get(camera.camera_id, [0.0])
            # one lens at one zoom: photographs of many zooms share no camera, so nothing is said then
            if min(focals) > 0 and max(focals) < 1.02 * min(focals):
                params = camera.params
                for index in camera.focal_length_idxs():
                    params[index] = float(np.median(focals))
                camera.params, camera.has_prior_focal_length = params.tolist(), True
                opened.update_camera(camera)


def _match(database: Path, pictures: dict[str, dict], settings: MotionSettings, threads: int) -> None:
    import pycolmap

    matching = pycolmap.FeatureMatchingOptions(num_threads=threads)
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = settings.seed
    with _quiet():
        if len(pictures) <= settings.exhaustive:
            pycolmap.match_exhaustive(
                str(database), matching, verification_options=verification, device=pycolmap.Device.cpu
            )
            return
        from fujinsplat.capture.motion.retrieval import likely_pairs

        listed = database.with_name("pairs.txt")
        listed.write_text("".join(f"{a} {b}\n" for a, b in likely_pairs(database, settings)))
        pairing = pycolmap.ImportedPairingOptions(match_list_path=str(listed))
        pycolmap.match_image_pairs(
            str(database), matching, pairing, verification_options=verification, device=pycolmap.Device.cpu
        )


def _mapping(settings: MotionSettings):
    """One thread: sums of several come out differently each time, and poses with them."""
    import pycolmap

    return pycolmap.IncrementalPipelineOptions(random_seed=settings.seed, num_threads=1)


def _triangulated(start, database: Path, place: Path, settings: MotionSettings):
    import pycolmap

    options = _mapping(settings)
    with _quiet():
        return pycolmap.triangulate_points(
            start, str(database), str(place / "pictures"), str(place / "points"), options=options
        )


class _quiet:
    """COLMAP writes pages to stderr; warnings and worse are kept."""

    def __enter__(self) -> None:
        import pycolmap

        self.before = pycolmap.logging.minloglevel
        pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value

    def __exit__(self, *_) -> None:
        import pycolmap

        pycolmap.logging.minloglevel = self.before


def _refuse_too_few(registered: int, count: int, missing: list[str], capture: CaptureSettings) -> None:
    fewest = max(FEWEST_VIEWS, math.ceil(capture.min_posed * count))
    if registered >= fewest:
        return
    raise UserError(
        f"structure from motion found a place for {registered} of {count} views, and at least {fewest} are needed "
        f"(capture.min_posed is {capture.min_posed:.0%}): neighbouring photographs should share two thirds of what "
        "they show, a step to the side apart; add views, remove those of other places, give poses with --poses, or "
        "lower the share"
        + (f" (without a place: {', '.join(missing[:8])}{'…' if len(missing) > 8 else ''})" if missing else "")
    )


def _rename(model: Model) -> None:
    """The model's images get their views' stems as names, as the capture stage looks for them."""
    stems = {about["name"]: stem for stem, about in model.pictures.items()}
    for number in list(model.reconstruction.images):
        image = model.reconstruction.images[number]
        image.name = f"{stems[image.name]}.png"


def _poses(model: Model) -> dict[str, np.ndarray]:
    """World to camera [4, 4] by stem."""
    found = {}
    for number in model.reconstruction.reg_image_ids():
        image = model.reconstruction.images[number]
        found[image.name.removesuffix(".png")] = np.vstack([image.cam_from_world().matrix(), [0, 0, 0, 1]])
    return dict(sorted(found.items()))


def _points(model: Model) -> np.ndarray:
    points = model.reconstruction.points3D
    return np.array([points[number].xyz for number in sorted(points)]).reshape(-1, 3)


def _apply(reconstruction, motion: Similarity) -> None:
    import pycolmap

    reconstruction.transform(pycolmap.Sim3d(motion.scale, pycolmap.Rotation3d(motion.rotation), motion.translation))


def _about(views: Sequence[View], model: Model, missing: list[str]) -> dict[str, Any]:
    """poses.json: what was found and what was not."""
    done = model.reconstruction
    used = {done.images[number].camera_id for number in done.reg_image_ids()}
    lenses = [done.cameras[number] for number in sorted(used)]
    return {
        "views": len(views),
        "registered": len(model.registered),
        "dropped": missing,
        "of_raw": all(view.raw is not None for view in views),
        "cleared": model.cleared,
        "points": done.num_points3D(),
        "error": float(done.compute_mean_reprojection_error()),
        "track": float(done.compute_mean_track_length()),
        "cameras": [
            {"model": c.model_name, "size": f"{c.width}x{c.height}", "params": [float(p) for p in c.params]}
            for c in lenses[:4]
        ],
        "turns": {stem: model.pictures[stem]["turns"] for stem in sorted(model.registered)},
    }


def _write(out: Path, reconstruction, about: dict[str, Any]) -> None:
    with atomic_folder(out, (".bin", ".json")) as folder:
        reconstruction.write_binary(str(folder))
        write_json(folder / FOUND_POSES, about)
