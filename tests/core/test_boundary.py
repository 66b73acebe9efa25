"""A job cannot open clean twins or held views that its rule does not name, in whatever way it tries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from PIL import Image

from fujinsplat.core import landlock

ROOT = Path(__file__).parents[2]
HELD = "results/demo/references/held/Hayate"
FITTED = "results/demo/actions/K-5/0001.safetensors"
JOB = """
import sys
from fujinsplat.core.jobs import as_a_job
from fujinsplat.core.errors import UserError
try:
    with as_a_job():
        exec(sys.argv[1])
except UserError as error:
    print(error, file=sys.stderr)
    raise SystemExit(2)
"""


@pytest.fixture
def world(tmp_path) -> Path:
    """A working folder with one picture of each kind, decoded and as it came, in several formats."""
    picture = np.full((4, 6, 3), 7, np.uint8)
    folders = [HELD, "results/demo/references/clean/Hayate", "results/demo/capture/Hayate/source"]
    folders += ["results/demo/actions", "results/demo/actions/K-5"]
    for folder in (*folders, *(f"data/demo/Hayate/{part}" for part in ("train", "val", "test"))):
        (tmp_path / folder).mkdir(parents=True)
        Image.fromarray(picture).save(tmp_path / folder / "0001.png")
        np.save(tmp_path / folder / "0001.npy", picture)
        safetensors.numpy.save_file({"x": picture}, tmp_path / folder / "0001.safetensors")
    return tmp_path


def run(world: Path, code: str, opens: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess:
    job = {
        "name": "splat_train",
        "outputs": ["results/demo/gaussians/Hayate/mine.ply"],
        "results": "results",
        "roots": ["data/demo"],
        "opens": list(opens),
    }
    described = {"FUJINSPLAT_JOB": json.dumps(job), "FUJINSPLAT_LOG": "results/demo/logs/splat/train/mine.log"}
    described["FUJINSPLAT_PARENT"] = str(os.getpid())
    return subprocess.run(
        [sys.executable, "-c", JOB, code],
        cwd=world,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **described, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def record(world: Path) -> dict:
    return json.loads((world / "results/demo/logs/splat/train/mine.reads.json").read_text())


PYTHON = {
    "open": f"open('{HELD}/0001.png', 'rb').read()",
    "pathlib": f"from pathlib import Path; Path('{HELD}/0001.png').read_bytes()",
    "numpy": f"import numpy; numpy.load('{HELD}/0001.npy')",
    "mapped": f"import numpy; numpy.load('{HELD}/0001.npy', mmap_mode='r')",
    "PIL": f"from PIL import Image; Image.open('{HELD}/0001.png')",
    "torch": f"import torch; torch.load('{HELD}/0001.png')",
    "a link": f"import os; os.symlink('{HELD}', 'x'); open('x/0001.png', 'rb')",
    "a hard link": f"import os; os.link('{HELD}/0001.png', 'x.png')",
    "moved": f"import os; os.rename('{HELD}', 'x')",
    "its folder moved": "import os; os.rename('results/demo/references', 'x'); open('x/held/Hayate/0001.png')",
    "a link made beforehand": f"import os; os.symlink('../{HELD}/0001.png', 'data/x.png')",
    "another name of this folder": f"open('/proc/self/cwd/{HELD}/0001.png', 'rb')",
    "a detour": f"import os; open('/usr/..' + os.path.abspath('{HELD}/0001.png'), 'rb')",
    "from inside": f"import os; os.chdir('{HELD}'); open('0001.png', 'rb')",
    "the dataset's own file": "open('data/demo/Hayate/test/0001.png', 'rb')",
    "a clean twin": "open('data/demo/Hayate/val/0001.png', 'rb')",
    "what was fitted to a clean twin": "open('results/demo/actions/0001.npy', 'rb')",
    "the same of other settings": "import numpy; numpy.load('results/demo/actions/K-5/0001.npy')",
    "another program, by name": f"import subprocess; subprocess.run(['cat', '{HELD}/0001.png'], check=True)",
}
NATIVE = {
    "safetensors": f"from safetensors.numpy import load_file; load_file('{HELD}/0001.safetensors')",
    "safetensors, of actions": f"from safetensors import safe_open; safe_open('{FITTED}', 'np')",
    "LibRaw": f"import rawpy; rawpy.imread('{HELD}/0001.png')",
    "another program": "import subprocess; subprocess.run('cat res*/d*/ref*/held/*/0001.png', shell=True, check=True)",
    "a folder's descriptor": f"import os; os.open('0001.png', 0, dir_fd=os.open('{HELD}', os.O_PATH | os.O_DIRECTORY))",
    "libc": f"import ctypes; assert ctypes.CDLL(None).open(b'{HELD}/0001.png', 0) >= 0",
}


@pytest.mark.parametrize("way", PYTHON)
def test_python_is_refused_with_a_sentence_even_without_help_from_the_kernel(world, way):
    done = run(world, PYTHON[way], FUJINSPLAT_LANDLOCK="0")
    assert done.returncode == 2, done.stderr
    refused = "splat_train must not open" in done.stderr and "which its rule does not name" in done.stderr
    assert refused or "splat_train must not move results/demo/references" in done.stderr
    assert "native code is not fenced" in done.stderr, "the fallback is said"


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("way", NATIVE)
def test_native_code_and_other_programs_cannot_open_them_either(world, way):
    done = run(world, NATIVE[way])
    assert done.returncode != 0, "it was opened"
    given = run(world, NATIVE[way], opens=(HELD, FITTED))
    assert "ermission denied" not in given.stderr and ("LibRaw" in way or given.returncode == 0), given.stderr


def test_our_own_native_readers_are_heard_without_help_from_the_kernel(world):
    code = f"from fujinsplat.flow import load; load('{FITTED}')"
    done = run(world, code, FUJINSPLAT_LANDLOCK="0")
    assert f"splat_train must not open {FITTED}: it is fitted to clean twins" in done.stderr and done.returncode == 2
    run(world, f"try: exec({code!r})\nexcept Exception: pass", opens=(FITTED,))
    assert record(world)["opened"] == {"clean": [FITTED]} and record(world)["refused"] == []


LIBC = "import ctypes; assert ctypes.CDLL(None).open(b'{}', 0) >= 0"
PLAIN = "open('{}', 'rb').read()"
# what is a link, and a closed file behind it
LINKED = {
    "a scene": ("data/demo/Hayate", "val/0001.png"),
    "a part": ("data/demo/Hayate/test", "0001.png"),
    "a picture": ("data/demo/Hayate/val/0001.png", ""),
    "a dataset's results": ("results/demo", "references/held/Hayate/0001.png"),
    "references": ("results/demo/references", "clean/Hayate/0001.png"),
    "actions": ("results/demo/actions/K-5", "0001.npy"),
}


def move_and_link(world: Path, what: str) -> tuple[str, str, str]:
    """Puts it elsewhere; the part that is closed, the alias and the real path of a file in it."""
    link, rest = LINKED[what]
    elsewhere = world / "elsewhere" / Path(link).name
    elsewhere.parent.mkdir()
    (world / link).rename(elsewhere)
    (world / link).symlink_to(elsewhere)
    alias = f"{link}/{rest}".rstrip("/")
    return alias if "/actions/" in alias else os.path.dirname(alias), alias, os.path.realpath(world / alias)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("what", LINKED)
def test_a_link_to_another_disk_opens_nothing(world, what, kernel):
    if kernel and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    closed, *names = move_and_link(world, what)
    ways = [PLAIN, LIBC] if kernel else [PLAIN]
    off = {} if kernel else {"FUJINSPLAT_LANDLOCK": "0"}
    for name in names:
        for way in ways:
            assert run(world, way.format(name), **off).returncode != 0, f"{name} was opened by {way}"
            given = run(world, way.format(name), opens=(closed,), **off)
            assert given.returncode == 0, given.stderr
        run(world, PLAIN.format(name), opens=(closed,), **off)
        kind = "held" if "held" in closed or "test" in closed else "clean"
        assert list(record(world)["opened"]) == [kind], "what is given is recorded"


def test_a_linked_scene_leaves_its_own_views_open(world):
    move_and_link(world, "a scene")
    done = run(world, "open('data/demo/Hayate/train/0001.png', 'rb').read(); open('elsewhere/Hayate/train/0001.png')")
    assert done.returncode == 0, done.stderr
    assert list(record(world)["opened"]) == ["source"]


def test_a_swallowed_refusal_fails_the_job_all_the_same(world):
    done = run(world, f"try:\n open('{HELD}/0001.png')\nexcept Exception: print('went on')")
    assert "went on" in done.stdout and done.returncode == 2
    assert "tried to open" in done.stderr


def test_what_is_given_can_be_opened_and_is_recorded(world):
    code = f"open('{HELD}/0001.png').close(); import numpy; numpy.load('results/demo/capture/Hayate/source/0001.npy')"
    done = run(world, code, opens=(HELD,))
    assert done.returncode == 0, done.stderr
    wrote = record(world)
    assert wrote["opened"] == {"held": [HELD], "source": ["results/demo/capture/Hayate/source"]}
    assert wrote["given"] == [HELD] and wrote["refused"] == []
    assert ("Landlock" in wrote["fence"]) == bool(landlock.version())


def test_what_a_forked_process_opens_is_recorded_too(world):
    code = (
        "from multiprocessing import get_context\n"
        f"def look(name): open('{HELD}/' + name).close()\n"
        "globals()['look'] = look\n"
        "process = get_context('fork').Process(target=look, args=('0001.png',)); process.start(); process.join()"
    )
    assert run(world, code, opens=(HELD,)).returncode == 0
    assert record(world)["opened"] == {"held": [HELD]}


def test_actions_are_written_read_and_recorded_by_the_job_that_makes_them(world):
    made = "results/demo/actions/Hayate.safetensors"
    code = (
        "import numpy; from fujinsplat.core.files import write_tensors; from safetensors.numpy import load_file\n"
        f"write_tensors('{made}', {{'x': numpy.ones(3)}}, {{}}); load_file('{made}'); open('{made}', 'rb').close()"
    )
    done = run(world, code, opens=(made,))
    assert done.returncode == 0, done.stderr
    assert record(world)["opened"] == {"clean": [made]}


def test_a_job_reads_what_it_writes_and_its_temporary_files(world):
    code = """
import tempfile
from pathlib import Path
import numpy as np
from fujinsplat.core.files import write_tensors
write_tensors('results/demo/gaussians/Hayate/mine.ply', {'x': np.ones(3)}, {})
assert Path('results/demo/gaussians/Hayate/mine.ply').read_bytes()
with tempfile.NamedTemporaryFile() as stream:
    Path(stream.name).write_text('x')
    assert Path(stream.name).read_text() == 'x'
"""
    done = run(world, code)
    assert done.returncode == 0, done.stderr
    assert record(world)["opened"] == {}
