"""A training run that survives being killed: its state on disk, and signals turned into a last save.

The folder is no output of the workflow (those are deleted before a job runs again); it is removed when training has
succeeded. It holds `state.pt`, replaced whole, and `log.jsonl`, cut back to the state's iteration on resume.
"""

import json
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import torch

from fujinsplat.core.files import atomic_file
from fujinsplat.core.progress import say


class Checkpoints:
    """`fingerprint` names everything the run's result depends on; a state of another run is not resumed."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any]):
        self.folder, self.fingerprint = Path(folder), json.loads(json.dumps(fingerprint))
        self.state_file, self.log_file = self.folder / "state.pt", self.folder / "log.jsonl"
        self.saved_iteration = 0

    def load(self, device: str) -> dict | None:
        """The last state, or None when there is none (or none of this very run)."""
        if not self.state_file.exists():
            self._cut_log(0)
            return None
        try:
            state = torch.load(self.state_file, map_location=device, weights_only=True)
            iteration, fitting = int(state["iteration"]), state["fingerprint"] == self.fingerprint
        except Exception as error:  # torch reports damage in many ways; a lost checkpoint only costs time
            say(f"{self.state_file} cannot be read ({type(error).__name__}); training starts from the beginning")
            state, iteration, fitting = None, 0, False
        else:
            if not fitting:
                say(f"{self.state_file} belongs to other inputs or settings; training starts from the beginning")
        self.saved_iteration = iteration if fitting else 0
        self._cut_log(self.saved_iteration)
        return state if fitting else None

    def save(self, iteration: int, state: dict) -> None:
        with atomic_file(self.state_file) as temporary:
            torch.save({**state, "iteration": iteration, "fingerprint": self.fingerprint}, temporary)
        self.saved_iteration = iteration

    def log(self, entry: dict) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")

    def _cut_log(self, iteration: int) -> None:
        if not self.log_file.exists():
            return
        kept = []
        for line in self.log_file.read_text(errors="replace").splitlines():
            try:
                if json.loads(line)["iteration"] <= iteration:
                    kept.append(line)
            except (ValueError, KeyError, TypeError):
                continue  # the line that was being written when the run was killed
        with atomic_file(self.log_file) as temporary:
            temporary.write_text("".join(line + "\n" for line in kept))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def where(self) -> str:
        """For error messages: the last good state."""
        if self.saved_iteration:
            return f"the last good checkpoint is {self.state_file} (iteration {self.saved_iteration})"
        return "there is no checkpoint yet"


class StopRequest:
    """SIGTERM and SIGINT become a flag that the training loop reads between two iterations."""

    def __init__(self):
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, _frame) -> None:
        self.signal = number

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
