"""A lock that a killed Snakemake left, or that a full disk has no room for, explained. Tested with snakemake 9.15 to
9.27.

Snakemake's own message leaves it to the person to be sure that nobody else works in the folder. Here the machine is
asked, and the one command that is safe is named. On a full disk Snakemake shows where in its own code it failed.
"""

import os
import shutil
from pathlib import Path

from fujinsplat.core.files import NEARLY_NOTHING

VERSIONS = "snakemake >=9.15,<9.28"


WITHOUT = {"--unlock", "--nolock", "--dry-run", "-n", "--mode"}  # runs that take no lock


def no_room(arguments: list[str]) -> str | None:
    """One sentence when this folder's disk is full, for a run with these command-line words."""
    if WITHOUT & set(arguments) or shutil.disk_usage(".").free >= NEARLY_NOTHING:
        return None
    return f"no space left on the disk of {os.getcwd()}; free space, or work in a folder elsewhere"


def explain_lock(arguments: list[str]) -> str | None:
    """One sentence when this folder is locked, for a run with these command-line words; None when it is not."""
    locks = Path(".snakemake/locks")
    if WITHOUT & set(arguments) or not locks.is_dir():
        return None
    if not any(locks.iterdir()):
        return None
    others = working_here()
    if others:
        return f"Snakemake with process {others[0]} works in this folder; wait until it has finished, or stop it"
    if not Path("/proc/self").exists():
        return None
    return (
        "this folder is locked by a Snakemake that no longer runs on this machine; unless one runs on another machine, "
        "`snakemake --unlock` is safe, and the next build goes on where that one stopped"
    )


def working_here() -> list[int]:
    """Process numbers of other Snakemakes whose working folder this is, the longest at work first."""
    mine, here, found = _ancestors(), os.path.realpath("."), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            folder = os.readlink(entry / "cwd")
        except OSError:
            continue  # it has ended, or is somebody else's
        called = any(os.path.basename(word) == b"snakemake" for word in words[:4])
        if called and folder == here and int(entry.name) not in mine:
            found.append(int(entry.name))
    return sorted(found)


def _ancestors() -> set[int]:
    """This process and those it was started by."""
    found, pid = set(), os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            break
    return found
