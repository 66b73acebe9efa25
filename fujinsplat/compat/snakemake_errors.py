"""A mistake in the user's folder that is found while Snakemake plans: one sentence. Tested with snakemake 9.15 to 9.27.

Snakemake wraps whatever an input function raises into its own exception, with wildcards and a traceback of our code in
the message. For errors of its own kind it leaves the message as it is, and so it does here for a `UserError`.
"""

from typing import Any

from fujinsplat.core.errors import UserError

VERSIONS = "snakemake >=9.15,<9.28"


def say_user_errors_plainly() -> None:
    """From now on an input function's `UserError`, and what `stop` makes, is shown as its sentence alone."""
    from snakemake import exceptions
    from snakemake.exceptions import InputFunctionException, WorkflowError

    if getattr(InputFunctionException, "says_user_errors_plainly", False):
        return
    original, lines = InputFunctionException.__init__, exceptions.cut_traceback
    # Snakemake heads a message with the name of its class; the jobs' own begin with the name of the program
    ours = type("fujinsplat", (InputFunctionException,), {})

    def initialise(self, msg, wildcards=None, lineno=None, snakefile=None, rule=None):
        if isinstance(msg, UserError):
            self.__class__ = ours
            WorkflowError.__init__(self, str(msg))
        else:
            original(self, msg, wildcards=wildcards, lineno=lineno, snakefile=snakefile, rule=rule)

    patched: Any = InputFunctionException
    patched.__init__ = initialise
    exceptions.cut_traceback = lambda error: [] if getattr(error, "plain", False) else lines(error)
    patched.says_user_errors_plainly = True


def stop(sentence: str) -> Exception:
    """To raise while a Snakefile is read: shown without the lines of code it came from."""
    from snakemake.exceptions import WorkflowError

    error: Any = WorkflowError(sentence)
    error.plain = True
    return error


def check_text(path: str) -> None:
    """Before `configfile:`, which has no words of its own for a file that is no text."""
    try:
        with open(path, encoding="utf-8") as stream:
            stream.read()
    except FileNotFoundError:
        pass  # `--configfile` may name another one
    except UnicodeDecodeError as error:
        raise stop(f"{path} is no UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise stop(f"{path} cannot be read: {(error.strerror or str(error)).lower()}; restore it") from None
