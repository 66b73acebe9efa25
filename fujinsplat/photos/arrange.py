"""A scene folder as the capture stage knows it, made of links to the photographs: nothing is copied or changed."""

import os
import shutil
from pathlib import Path

from fujinsplat.capture.layout import FOLDERS, LEFT_OUT
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json, write_json
from fujinsplat.photos.find import Found
from fujinsplat.photos.given import Given, write_given


def arrange(found: Found, home: Path, given: Given | None) -> None:
    """`home` with `train/` full of links under safe names, and the given poses beside it. Made again it leaves alone
    what has not changed, so that the workflow does not run again either."""
    train = home / FOLDERS["source"]
    train.mkdir(parents=True, exist_ok=True)
    wanted = {f"{view.stem}{file.suffix.lower()}": file.absolute() for view in found.views for file in view.files}
    for there in sorted(train.iterdir()):
        if not there.is_symlink():
            raise UserError(f"{there} is no link of ours; choose another --out, or remove {home}")
        if there.name not in wanted or Path(os.readlink(there)) != wanted[there.name]:
            there.unlink()
    for name, file in wanted.items():
        if not (train / name).is_symlink():
            (train / name).symlink_to(file)
    notes = home / LEFT_OUT
    if not notes.is_file() or read_json(notes) != found.problems:
        write_json(notes, found.problems)
    model = home / "sparse" / "0"
    if given is None:
        shutil.rmtree(home / "sparse", ignore_errors=True)
    else:
        _keep_if_equal(given, found, model)


def _keep_if_equal(given: Given, found: Found, model: Path) -> None:
    fresh = model.with_name("new")
    write_given(given, found.views, fresh)
    names = sorted(file.name for file in fresh.iterdir())
    same = model.is_dir() and sorted(file.name for file in model.iterdir()) == names
    if same and all((model / name).read_bytes() == (fresh / name).read_bytes() for name in names):
        shutil.rmtree(fresh)
        return
    shutil.rmtree(model, ignore_errors=True)
    fresh.rename(model)
