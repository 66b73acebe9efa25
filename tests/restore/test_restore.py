"""Restorers keep names, sizes and depth, take haze away, and name what is wrong."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from pydantic import ValidationError

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import sha256
from fujinsplat.restore import RestorerSettings, record, restore, unavailable
from fujinsplat.restore.aod_net import LAYERS
from fujinsplat.restore.dark_channel import airlight, dark_channel, guided_filter

EACH = "import sys, pathlib; from PIL import Image; [Image.open(p).{}.save(sys.argv[2] + '/' + p.name) for p in {}]"
EACH = EACH.replace("in {}", "in pathlib.Path(sys.argv[1]).iterdir()")
COPY = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True)"


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(-10 * np.log10(((a.astype(float) - b.astype(float)) ** 2).mean() / 255**2))


@pytest.fixture
def scene() -> tuple[np.ndarray, np.ndarray]:
    """A colourful picture and the same behind haze that thickens from left to right (A = .8, t from .9 to .35)."""
    generator = np.random.default_rng(3)
    patches = generator.uniform(0, 1, (12, 18, 3)) * np.array([1, 0.6, 0.3])
    patches[generator.uniform(size=(12, 18)) < 0.3] *= 0.1
    clean = np.clip(np.kron(patches, np.ones((10, 10, 1))), 0, 1)
    t = np.linspace(0.9, 0.35, 180)[None, :, None]
    hazy = clean * t + 0.8 * (1 - t)
    hazy[:6, -6:] = 0.8  # sky: where airlight can be seen
    return tuple((picture * 255 + 0.5).astype(np.uint8) for picture in (clean, hazy))


@pytest.fixture
def pictures() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {f"{i:04d}": generator.integers(0, 255, (20, 30, 3), np.uint8) for i in (1, 2, 3)}


def command(code: str, **more) -> RestorerSettings:
    return RestorerSettings(by="other", command=f'{sys.executable} -c "{code}" {{input}} {{output}}', **more)


def test_dark_channel_takes_known_haze_away(scene):
    clean, hazy = scene
    restored = restore({"0001": hazy}, RestorerSettings(by="dark_channel"))["0001"]
    assert restored.dtype == np.uint8 and restored.shape == hazy.shape
    assert psnr(restored, clean) > psnr(hazy, clean) + 4


def test_airlight_is_seen_where_the_haze_is_thickest(scene):
    hazy = scene[1] / 255
    np.testing.assert_allclose(airlight(hazy, dark_channel(hazy, 3), 0.001), 0.8, atol=0.01)


def test_guided_filter_keeps_what_the_guide_explains():
    guide = np.repeat(np.linspace(0, 1, 40)[None], 30, 0)
    np.testing.assert_allclose(guided_filter(guide, 2 * guide + 1, 5, 1e-9), 2 * guide + 1, atol=1e-3)
    np.testing.assert_allclose(guided_filter(guide, np.full((30, 40), 0.3), 5, 1e-3), 0.3, atol=1e-9)


def aod_weights(path: Path, k: float) -> Path:
    """A network whose K is the constant `k`."""
    tensors = {}
    for layer, (reads, size) in LAYERS.items():
        tensors[f"e_conv{layer}.weight"] = torch.zeros(3, 3 * len(reads), size, size)
        tensors[f"e_conv{layer}.bias"] = torch.full((3,), k)
    torch.save(tensors, path)
    return path


def test_aod_net_is_k_x_minus_k_plus_one(tmp_path, pictures):
    by = RestorerSettings(by="aod_net", weights=str(aod_weights(tmp_path / "w.pth", 1.5)))
    restored = restore(pictures, by)
    for stem, picture in pictures.items():
        expected = np.clip(1.5 * picture / 255 - 0.5, 0, 1)
        np.testing.assert_allclose(restored[stem] / 255, expected, atol=0.5 / 255 + 1e-6)


def test_wrong_weights_are_named(tmp_path, pictures):
    path = aod_weights(tmp_path / "w.pth", 1.5)
    good = RestorerSettings(by="aod_net", weights=str(path), sha256=sha256(path))
    restore(pictures, good)
    assert record(good)["weights_sha256"] == sha256(path)
    with pytest.raises(UserError, match=r"w\.pth has the checksum"):
        restore(pictures, good.model_copy(update={"sha256": "0" * 64}))
    torch.save({"e_conv1.weight": torch.zeros(3, 3, 1, 1)}, path)
    with pytest.raises(UserError, match=r"no e_conv1.bias of shape \[3\]"):
        restore(pictures, RestorerSettings(by="aod_net", weights=str(path)))
    path.write_text("nothing")
    with pytest.raises(UserError, match="not a torch weights file"):
        restore(pictures, RestorerSettings(by="aod_net", weights=str(path)))
    path.unlink()
    with pytest.raises(UserError, match="do not exist"):
        restore(pictures, RestorerSettings(by="aod_net", weights=str(path)))


def test_a_program_gets_and_gives_the_same_names(pictures):
    restored = restore(pictures, command(COPY), "Kochi")
    assert list(restored) == list(pictures)
    assert all((restored[stem] == pictures[stem]).all() for stem in pictures)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise SystemExit('no more memory')", "failed with code 1: no more memory"),
        (f"{COPY}; import os; os.remove(sys.argv[2] + '/0002.png')", "no picture of '0002'"),
        (f"{COPY}; shutil.copy(sys.argv[1] + '/0001.png', sys.argv[2] + '/9.png')", "'9' in {output} is no view"),
        (f"{COPY}; shutil.copy(sys.argv[1] + '/0001.png', sys.argv[2] + '/0001.jpg')", "are both named '0001'"),
        (
            EACH.format("crop((0, 0, 16, 16))"),
            "has 16 x 16 pixels and its view 30 x 20",
        ),
        (
            EACH.format("convert('L')"),
            "is L, not 8-bit RGB",
        ),
        ("import sys; [open(sys.argv[2] + f'/000{i}.png', 'w').write('x') for i in (1, 2, 3)]", "cannot be read"),
        ("import sys, shutil; shutil.copytree(sys.argv[1], sys.argv[2] + '/out')", "there is the folder 'out'"),
        ("import sys, shutil; shutil.rmtree(sys.argv[2])", "{output} is no folder any more"),
    ],
)  # fmt: skip
def test_a_program_that_goes_wrong_is_one_sentence(pictures, code, sentence):
    with pytest.raises(UserError, match=sentence):
        restore(pictures, command(code), "Kochi")


def test_sixteen_bits_are_refused(tmp_path, pictures):
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    for stem, picture in pictures.items():
        high, wide, _ = picture.shape
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in picture.astype(np.uint16) * 257)
        head = wide.to_bytes(4, "big") + high.to_bytes(4, "big") + bytes([16, 2, 0, 0, 0])
        data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        (tmp_path / f"{stem}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    with pytest.raises(UserError, match="is 16-bit, not 8-bit RGB"):
        restore(pictures, RestorerSettings(by="convir", folder=str(tmp_path.parent / "{scene}")), tmp_path.name)


def test_a_folder_is_read_scene_by_scene(tmp_path, pictures):
    (tmp_path / "Kochi").mkdir()
    for stem, picture in pictures.items():
        Image.fromarray(255 - picture).save(tmp_path / "Kochi" / f"{stem}.png")
    by = RestorerSettings(by="convir", folder=str(tmp_path / "{scene}"))
    assert (restore(pictures, by, "Kochi")["0002"] == 255 - pictures["0002"]).all()
    assert unavailable(by, "Kochi") is None
    assert "Oroshi does not exist" in unavailable(by, "Oroshi")


def test_a_program_may_not_take_for_ever(pictures):
    with pytest.raises(UserError, match="did not finish"):
        restore(pictures, command("import time; time.sleep(20)", minutes=0.005), "Kochi")


def test_what_a_program_started_ends_with_it(tmp_path, pictures):
    """A shell script that calls the restorer is the usual command; what time is up for is the restorer."""
    (tmp_path / "run.sh").write_text(f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    by = RestorerSettings(by="other", command=f"sh {tmp_path}/run.sh {{input}} {{output}}", minutes=0.01)
    with pytest.raises(UserError, match="did not finish"):
        restore(pictures, by, "Kochi")
    assert state_of(int((tmp_path / "pid").read_text())) in ("gone", "Z", "X"), "nobody may be left to collect it"


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text().split("State:")[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_ends_with_the_terminal_that_started_it(tmp_path, number):
    started = tmp_path / "pid"
    call = f"run_program(['sh', '-c', 'echo $$ > {started}.new; mv {started}.new {started}; sleep 60'], None, 1, 'it')"
    heard = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)"  # `nohup make test` leaves it ignored
    code = f"{heard}; from fujinsplat.restore.external import run_program; {call}"
    ours = subprocess.Popen([sys.executable, "-c", code])
    end = time.monotonic() + 30
    while not started.exists() and time.monotonic() < end:
        time.sleep(0.02)
    ours.send_signal(number)
    assert ours.wait(30) == 128 + number
    assert state_of(int(started.read_text())) in ("gone", "Z", "X")


def test_a_program_that_is_not_there(pictures):
    by = RestorerSettings(by="other", command="/nowhere/restore {input} {output}")
    with pytest.raises(UserError, match="cannot be started"):
        restore(pictures, by, "Kochi")
    by = RestorerSettings(by="other", command=f"{sys.executable} {{input}} {{output}}", directory="/nowhere")
    with pytest.raises(UserError, match="its `directory` /nowhere is no folder"):
        restore(pictures, by, "Kochi")


def test_contradictions_are_refused():
    with pytest.raises(ValidationError, match="must say where"):
        RestorerSettings(by="other", command="restore {input}")
    with pytest.raises(ValidationError, match="choose one"):
        RestorerSettings(by="convir", command="r {input} {output}", folder="x")
    with pytest.raises(ValidationError, match="no `weights` are given"):
        RestorerSettings(by="convir", command="r {input} {output} {weights}")
    with pytest.raises(ValidationError, match="so that no scene gets another's pictures"):
        RestorerSettings(by="convir", folder="restored")
    with pytest.raises(ValidationError, match="is a method of ours"):
        RestorerSettings(by="dark_channel", folder="x")


def test_a_checksum_is_never_ignored(tmp_path, pictures):
    with pytest.raises(ValidationError, match="without `weights`, so nothing would be checked"):
        RestorerSettings(by="convir", command="r {input} {output}", sha256="0" * 64)
    RestorerSettings(by="maxim", sha256="0" * 64)  # of the archive that was fetched
    (tmp_path / "w.pth").write_text("weights")
    for stem, picture in pictures.items():
        Image.fromarray(picture).save(tmp_path / f"{stem}.png")
    for more in (
        {"folder": str(tmp_path.parent / "{scene}")},
        {"command": f'{sys.executable} -c "{COPY}" {{input}} {{output}}'},
    ):
        by = RestorerSettings(by="convir", weights=str(tmp_path / "w.pth"), sha256="0" * 64, **more)
        with pytest.raises(UserError, match=r"w\.pth has the checksum"):
            restore(pictures, by, tmp_path.name)


def test_a_folder_of_results_takes_nothing_else_away(tmp_path, pictures):
    from typer.testing import CliRunner

    from fujinsplat.restore.command import app

    given, made = tmp_path / "given", tmp_path / "made"
    given.mkdir()
    for stem, picture in pictures.items():
        Image.fromarray(picture).save(given / f"{stem}.png")
    before = {path.name: path.read_bytes() for path in given.iterdir()}

    def run(out: Path) -> str | None:
        error = CliRunner().invoke(app, ["folder", str(given), "--out", str(out)]).exception
        return None if error is None else str(error)

    assert "where the pictures themselves lie" in (run(given) or "")
    assert "where the pictures themselves lie" in (run(tmp_path) or "")
    assert run(made) is None and run(made) is None, "results of an earlier run are replaced"
    (made / "notes.txt").write_text("mine")
    assert "'notes.txt', which would be lost" in (run(made) or "")
    assert (made / "notes.txt").read_text() == "mine"
    assert {path.name: path.read_bytes() for path in given.iterdir()} == before


# the documented command lines

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text()
NETWORK = """
import torch
class Net(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()
        self.k = torch.nn.Parameter(torch.zeros(1))
    def forward(self, x):
        assert not x.shape[2] % {multiple} and not x.shape[3] % {multiple}
        return {out}
"""
# what the script imports of each repository
REPOSITORIES = {
    "convir": {"models/ConvIR.py": NETWORK.format(multiple=32, out="[x[..., ::4, ::4], x[..., ::2, ::2], self.k - x]")
               + "build_net = Net"},
    "promptir": {"net/model.py": NETWORK.format(multiple=16, out="self.k - x") + "PromptIR = Net"},
    "moce_ir": {
        "options.py": "import sys\ndef train_options(): assert sys.argv[3:] == ['--rank_type', 'spread']",
        "test.py": NETWORK.format(multiple=8, out="[self.k - x, 0]")
        + "class PLTestModel:\n    def __init__(self, opt): self.net = Net()",
    },
}  # fmt: skip


def test_documented_settings_are_accepted():
    rows = yaml.safe_load(re.search(r"```yaml\n(# restored.*?)```", DOCUMENTED, re.DOTALL)[1])
    assert {RestorerSettings(**row).by for row in rows.values()} == {"convir", "promptir", "mb_taylorformer", "moce_ir"}
    for row in rows.values():
        assert "command" not in row or {"directory", "weights"} <= set(row)


@pytest.mark.parametrize("method", REPOSITORIES)
def test_the_documented_script_keeps_the_contract(tmp_path, pictures, method):
    """With a network of the repository's shape that inverts pictures; these are no multiple of anything."""
    script = re.search(r'```python\n("""restore_folder.*?)```', DOCUMENTED, re.DOTALL)[1]
    for name, text in {**REPOSITORIES[method], "restore_folder.py": script}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    one = torch.ones(1)
    torch.save({"model": {"k": one}} if method == "convir" else {"state_dict": {"net.k": one}}, tmp_path / "w")
    more = " --rank_type spread" if method == "moce_ir" else ""
    line = f"{sys.executable} restore_folder.py {method} {{input}} {{output}} {{weights}}{more}"
    by = RestorerSettings(by=method, command=line, directory=str(tmp_path), weights=str(tmp_path / "w"))
    restored = restore(pictures, by, "Kochi")
    assert all((restored[stem] == 255 - pictures[stem]).all() for stem in pictures)
