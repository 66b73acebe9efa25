"""Cheating opens: a job reads a picture that its rule does not name, in one of many ways. None may succeed."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from benchmarks.torments.builds import environment

# `{path}`: a picture; `{other}`: a name that is free. Success is the word TAKEN
READ = {
    "open": "open({path!r}, 'rb').read()",
    "pathlib": "__import__('pathlib').Path({path!r}).read_bytes()",
    "io": "__import__('io').open({path!r}, 'rb').read()",
    "os.open": "import os; os.read(os.open({path!r}, os.O_RDONLY), 9)",
    "numpy": "import numpy; numpy.fromfile({path!r}, 'u1', 9)",
    "mmap": "import mmap; stream = open({path!r}, 'rb'); mmap.mmap(stream.fileno(), 0, access=1)[:9]",
    "PIL": "from PIL import Image; Image.open({path!r}).load()",
    "shutil": "import shutil; shutil.copy({path!r}, {other!r}); open({other!r}, 'rb').read()",
    "link": "import os; os.symlink(os.path.abspath({path!r}), {other!r}); open({other!r}, 'rb').read()",
    "hard link": "import os; os.link({path!r}, {other!r}); open({other!r}, 'rb').read()",
    "rename": "import os; os.rename({path!r}, {other!r}); open({other!r}, 'rb').read()",
    "chdir": "import os; os.chdir(os.path.dirname({path!r})); open(os.path.basename({path!r}), 'rb').read()",
    "fork": (
        "import os\npid = os.fork()\nif not pid:\n try:\n  open({path!r}, 'rb').read()\n  os._exit(0)\n"
        " except BaseException:\n  os._exit(1)\nassert os.waitpid(pid, 0)[1] == 0"
    ),
    "thread": (
        "import threading\nout = []\ndef look():\n try:\n  out.append(open({path!r}, 'rb').read())\n"
        " except BaseException:\n  pass\nt = threading.Thread(target=look)\nt.start()\nt.join()\nassert out"
    ),
    "program": "import subprocess; subprocess.run(['cat', {path!r}], check=True, stdout=-3)",
    "shell": "import subprocess; subprocess.run('cat $P', shell=True, check=True, stdout=-3, env={{'P': {path!r}}})",
    "libc": "import ctypes; assert ctypes.CDLL(None).open({path!r}.encode(), 0) >= 0",
    "ctypes read": (
        "import ctypes; libc = ctypes.CDLL(None); libc.fopen.restype = ctypes.c_void_p; "
        "assert libc.fopen({path!r}.encode(), b'rb')"
    ),
    "LibRaw": "import rawpy\ntry:\n rawpy.imread({path!r})\nexcept rawpy.LibRawFileUnsupportedError: pass",
    "safetensors": (
        "import safetensors\ntry:\n safetensors.safe_open({path!r}, 'np')\n"
        "except safetensors.SafetensorError as error:\n assert 'denied' not in str(error), error"
    ),
}
JOB = """
import os, sys
from fujinsplat.core.jobs import as_a_job
with as_a_job():
    try:
        exec(sys.argv[1])
        sys.stdout.write("TAKEN")
        sys.stdout.flush()
    except BaseException as error:
        print(type(error).__name__, error, file=sys.stderr)
"""


def cheat(build: Path, work: Path, until: float, rng: Random, counts: Counter, losses: list[str]) -> None:
    """Cheats until the time is up, each way as often as any other; in a copy, because what a job is gets recorded."""
    build = Path(shutil.copytree(build, work / "build", symlinks=True))
    patterns = ("results/*/references/*/*/*.png", "results/*/references/*/*/*.npy", "data/*/*/val/*", "data/*/*/test/*")
    files = [path for pattern in patterns for path in sorted(build.glob(pattern)) if path.is_file()]
    number = 0
    while time.monotonic() < until:
        ways = list(READ)
        rng.shuffle(ways)
        for way in ways:
            if time.monotonic() >= until:
                return
            number += 1
            if taken(build, way, str(rng.choice(files).relative_to(build)), f"taken.{number}"):
                losses.append(f"{way} read what it was not given")
            counts[way] += 1


def taken(build: Path, way: str, path: str, name: str, opens: list[str] | None = None) -> bool:
    """Whether a job that is given these folders, or nothing, gets at a picture."""
    job = {
        "name": "splat_train",
        "outputs": [f"results/demo/gaussians/{name}.ply"],
        "results": "results",
        "roots": ["data/demo"],
        "opens": opens or [],
    }
    described = {"FUJINSPLAT_JOB": json.dumps(job), "FUJINSPLAT_PARENT": str(os.getpid())}
    described["FUJINSPLAT_LOG"] = f"results/demo/logs/torture/{name}.log"
    code = READ[way].format(path=path, other=f"results/demo/gaussians/{name}")
    done = subprocess.run(
        [sys.executable, "-c", JOB, code],
        cwd=build,
        env={**environment(), **described},
        capture_output=True,
        timeout=900,
        check=False,
    )
    return b"TAKEN" in done.stdout
