"""Depth-Anything from a local folder: the real classes with few, random weights."""

import numpy as np
import pytest

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.synthesis import depth as depth_module
from fujinsplat.synthesis.captures import Captures, sample
from fujinsplat.synthesis.depth import DepthNetwork, depth_range, fetch_network
from fujinsplat.synthesis.sheet import read_sheet


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A tiny Depth-Anything with random weights, saved as the hub's files are."""
    import torch

    depth_module._complete_torchvision()
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    torch.manual_seed(3)
    backbone = Dinov2Config(
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=518,
        patch_size=74,
        out_indices=[1, 2],
        out_features=["stage1", "stage2"],
        apply_layernorm=True,
        reshape_hidden_states=False,
    )
    config = DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=74,
        reassemble_hidden_size=12,
        reassemble_factors=[1, 0.5],
        neck_hidden_sizes=[8, 8],
        fusion_hidden_size=8,
        head_hidden_size=4,
    )
    folder = tmp_path_factory.mktemp("network")
    model = DepthAnythingForDepthEstimation(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)  # the classes' own start is so small that depth would be constant
    model.head.conv3.bias.data.fill_(5.0)  # the head ends in a ReLU: keep depth alive
    model.save_pretrained(folder)
    return folder


def test_depth_comes_from_the_network(external, network, settings, tmp_path):
    """Ranges are positive, those of the pictures, and the same whatever the batch."""
    given = settings.model_copy(update={"depth": "network", "depth_batch": 4})
    members = read_sheet(external)
    sample(members, tmp_path / "a.safetensors", given, network)
    sample(members, tmp_path / "b.safetensors", given.model_copy(update={"depth_batch": 1}), network)
    a, b = Captures.load(tmp_path / "a.safetensors"), Captures.load(tmp_path / "b.safetensors")
    assert (a.depth_range > 0).all() and len(np.unique(a.depth_range)) == len(members)
    np.testing.assert_allclose(a.depth_range, b.depth_range, rtol=1e-4)


def test_the_networks_output_is_inverse_depth(external, network):
    """The range is that of 1 / output."""
    from fujinsplat.capture.raw import read_raw
    from fujinsplat.core.settings import CaptureSettings

    capture = read_sheet(external)[0]
    raw = read_raw(capture.path, CaptureSettings())
    loaded = DepthNetwork(network)
    picture = loaded._prepared(raw)[None]
    assert picture.shape == (1, 3, 518, 518)
    with loaded.torch.inference_mode():
        inverse = loaded.model(pixel_values=picture).predicted_depth.numpy()
    low, high = np.percentile(1 / np.maximum(inverse.astype(np.float64), 1e-6), [10, 90])
    assert depth_range(loaded.maps([capture], [raw])[0]) == pytest.approx(np.log(high / low), rel=1e-5)


def test_fetching_copies_a_local_folder(network, tmp_path):
    fetch_network(str(network), "main", tmp_path / "network")
    assert {path.name for path in (tmp_path / "network").iterdir()} == {"config.json", "model.safetensors"}


def test_a_missing_network_says_what_to_do(tmp_path, monkeypatch):
    """Without cache and network: what to download, from where, and which setting to change; nothing is left behind."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        UserError, match=r"config\.json and model\.safetensors from https://huggingface\.co/some/model"
    ) as error:
        fetch_network("some/model", "main", tmp_path / "network")
    assert "synthesis.depth_model" in str(error.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match=r"holds no config\.json"):
        DepthNetwork(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match="not a Depth-Anything network"):
        DepthNetwork(tmp_path)


def test_weights_that_are_not_the_pinned_ones_are_refused(tmp_path, monkeypatch):
    model, revision = "depth-anything/Depth-Anything-V2-Small-hf", SynthesisSettings().depth_revision
    cached = tmp_path / f"models--{model.replace('/', '--')}" / "snapshots" / revision
    cached.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (cached / name).write_text("{}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="is not what revision 5426e4f of the depth network has"):
        fetch_network(model, revision, tmp_path / "network")
    assert not (tmp_path / "network").exists()


def test_depth_range():
    depth = np.concatenate([np.full(50, 1.0), np.full(50, np.e)])
    assert depth_range(depth) == pytest.approx(1.0)
