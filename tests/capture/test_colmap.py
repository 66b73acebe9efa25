"""Our reader of COLMAP models agrees with COLMAP's own."""

import numpy as np
import pycolmap
import pytest

from fujinsplat.capture.colmap import colmap_cameras, colmap_points


@pytest.fixture(params=["binary", "text"])
def model(request, tmp_path):
    """A synthetic reconstruction with 2D points and tracks, as COLMAP writes it."""
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 2, 2, 3, 40
    options.camera_model_id, options.camera_params = pycolmap.CameraModelId.PINHOLE, [1280.0, 1290.0, 512.0, 384.0]
    reconstruction = pycolmap.synthesize_dataset(options)
    folder = tmp_path / "sparse"
    folder.mkdir()
    (reconstruction.write_binary if request.param == "binary" else reconstruction.write_text)(str(folder))
    return folder, reconstruction


def test_cameras_agree_with_colmap(model):
    folder, reconstruction = model
    ours = colmap_cameras(folder)
    images = [reconstruction.images[i] for i in reconstruction.reg_image_ids()]
    assert len(images) == 12 and len(ours) == 12
    for image in images:
        camera, lens = ours[image.name.rsplit("/")[-1].removesuffix(".png").casefold()], image.camera
        assert (camera.width, camera.height) == (lens.width, lens.height)
        assert np.allclose(camera.K, lens.calibration_matrix())
        assert np.allclose(camera.viewmat[:3], image.cam_from_world().matrix(), atol=1e-9)


def test_points_agree_with_colmap(model):
    folder, reconstruction = model
    xyz, rgb = colmap_points(folder)
    points = [reconstruction.points3D[i] for i in sorted(reconstruction.points3D)]
    assert len(points) == len(xyz) == 40
    assert np.allclose(xyz, [point.xyz for point in points])
    assert (rgb == [point.color for point in points]).all()
