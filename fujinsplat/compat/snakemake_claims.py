"""Outputs that another living run is making are left alone. Tested with snakemake 9.15 to 9.27.

Snakemake deletes a job's outputs and its log before the job starts, and the outputs again when it has failed; only its
lock on the folder keeps two runs apart, and `--nolock`, `--unlock` or a shared results folder go past that.
"""

import os
from pathlib import Path
from typing import Any

from fujinsplat.compat.snakemake_errors import stop
from fujinsplat.core.claims import Holder, living_holder

VERSIONS = "snakemake >=9.15,<9.28"


def _other(output: str) -> Holder | None:
    """The holder of an output, unless it is a job of this very Snakemake."""
    holder = living_holder(Path(output))
    return None if holder is None or (holder.here and holder.parent == os.getpid()) else holder


def respect_claims() -> None:
    """From now on a job whose output somebody else holds does not start, and deletes nothing of theirs."""
    from snakemake.jobs import Job

    patched: Any = Job
    if getattr(patched, "respects_claims", False):
        return
    remove, clean = patched.remove_existing_output, patched.cleanup

    async def remove_existing_output(self):
        for output in self.output:
            if holder := _other(output):
                raise stop(
                    f"{output} is being made by {holder.described()}; wait until that run has finished, or stop it"
                )
        await remove(self)

    async def cleanup(self, skip_outputs):
        await clean(self, {*skip_outputs, *(output for output in self.output if _other(output))})

    patched.remove_existing_output, patched.cleanup = remove_existing_output, cleanup
    patched.respects_claims = True
