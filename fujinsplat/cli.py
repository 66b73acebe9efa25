"""`fujinsplat <stage> …`: thin commands, in stage order. Heavy imports happen inside the commands."""

import errno
import sys
from importlib import import_module

import typer

from fujinsplat.errors import UserError
from fujinsplat.options import stage_app

# in the order the data moves; each `fujinsplat.<package>.command` holds a typer app called `app`
STAGES = {
    "demo": "fujinsplat.demo.command",
    "capture": "fujinsplat.capture.command",
    "isp": "fujinsplat.isp.command",
    "action": "fujinsplat.flow.command",
    "actions": "fujinsplat.actions.command",
    "synthesis": "fujinsplat.synthesis.command",
    "controller": "fujinsplat.controller.command",
    "develop": "fujinsplat.develop.command",
    "splat": "fujinsplat.splat.command",
    "evaluate": "fujinsplat.evaluate.command",
    "analysis": "fujinsplat.analysis.command",
    "report": "fujinsplat.report.command",
    "config": "fujinsplat.config_command",
    "doctor": "fujinsplat.doctor",
}


def build() -> typer.Typer:
    app = stage_app("RAW photographs taken through smoke in, one clean 3D Gaussian scene out.")
    app.callback()(lambda: None)
    for name, module in STAGES.items():
        app.add_typer(import_module(module).app, name=name)
    return app


def main() -> None:
    try:
        build()()
    except UserError as error:
        print(f"fujinsplat: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT):
            raise
        where = f" ({error.filename})" if error.filename else ""
        print(f"fujinsplat: {error.strerror}{where}; free space or choose a writable folder", file=sys.stderr)
        raise SystemExit(2) from None
