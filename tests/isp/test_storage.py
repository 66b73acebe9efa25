"""Bases on disk, and the authors' checkpoints."""

import pickle

import pytest
import torch

from fujinsplat.core.errors import UserError
from fujinsplat.isp import import_checkpoint, load, save
from fujinsplat.isp.storage import AUTHORS


def authors_state(base) -> dict[str, torch.Tensor]:
    ours = base.state_dict()
    return {theirs: ours[name].clone() for theirs, name in AUTHORS.items()}


def test_what_is_saved_is_loaded(base, raw, tmp_path):
    save(base, tmp_path / "base.safetensors", scene="Kochi")
    again = load(tmp_path / "base.safetensors")
    assert again.notes["scene"] == "Kochi"
    assert torch.equal(again(raw), base(raw))
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in base.state_dict().items())


def test_authors_checkpoint_is_imported(base, raw, tmp_path):
    torch.save({"state_dict": authors_state(base), "step": 500}, tmp_path / "base.pt")
    imported = import_checkpoint(tmp_path / "base.pt")
    assert imported.encoding == "none"  # its tone curve ends encoded: no second transfer curve
    base.encoding = "none"
    assert torch.equal(imported(raw), base(raw))


def test_other_layouts_of_the_same_tensors_are_understood(base, raw, tmp_path):
    state = authors_state(base)
    state["base_exposure"] = state["base_exposure"].reshape(1)
    state["fine_action"] = state["fine_action"].permute(3, 0, 1, 2)[None]
    state["residual_action"] = state["residual_action"].permute(3, 0, 1, 2)
    state["base_row_matrix"] = state["base_row_matrix"].double()
    torch.save({"state_dict": state}, tmp_path / "base.pt")
    assert torch.equal(import_checkpoint(tmp_path / "base.pt", "srgb")(raw), base(raw))


def test_encoding_of_an_imported_base_is_kept(base, raw, tmp_path):
    torch.save({"state_dict": authors_state(base)}, tmp_path / "base.pt")
    save(import_checkpoint(tmp_path / "base.pt", "none"), tmp_path / "base.safetensors")
    linear = load(tmp_path / "base.safetensors")
    assert linear.encoding == "none" and not torch.allclose(linear(raw), base(raw))


class Surprise:
    def __reduce__(self):
        return (eval, ("open('/tmp/fujinsplat-surprise', 'w')",))


def test_only_tensors_are_unpickled(base, tmp_path):
    torch.save({"state_dict": authors_state(base), "extra": Surprise()}, tmp_path / "base.pt")
    with pytest.raises(UserError, match="not a checkpoint of plain tensors"):
        import_checkpoint(tmp_path / "base.pt")


@pytest.mark.parametrize("what", ["absent", "text", "list", "missing", "shape", "nan", "pickle"])
def test_wrong_checkpoints_are_refused_with_a_sentence(base, tmp_path, what):
    path, state = tmp_path / "base.pt", authors_state(base)
    content, sentence = {"state_dict": state}, "base.pt"
    if what == "missing":
        del state["tone.log_increment_delta"]
        sentence = "lacks tone.log_increment_delta"
    elif what == "shape":
        state["fine_action"] = torch.zeros(5, 5, 5, 3)
        sentence = r"g9 has shape \[5, 5, 5, 3\], not \[9, 9, 9, 3\]"
    elif what == "nan":
        state["matrix_log_residual"][0, 0] = float("nan")
        sentence = "generator holds values that are not finite"
    elif what == "list":
        content, sentence = [1, 2], "no base checkpoint"
    if what == "text":
        path.write_text("no checkpoint")
    elif what == "pickle":
        path.write_bytes(pickle.dumps({"state_dict": 1}))
    elif what != "absent":
        torch.save(content, path)
    with pytest.raises(UserError, match=sentence):
        import_checkpoint(path)


def test_wrong_files_are_refused_with_a_sentence(base, tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "absent.safetensors")
    (tmp_path / "text.safetensors").write_text("no tensors")
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load(tmp_path / "text.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="is not a Base ISP"):
        load(tmp_path / "other.safetensors")
    notes = {"kind": "fujinsplat base isp", "encoding": "srgb"}
    save_file({"tone": torch.zeros(1)}, tmp_path / "half.safetensors", notes)
    with pytest.raises(UserError, match="lacks the tensor"):
        load(tmp_path / "half.safetensors")
