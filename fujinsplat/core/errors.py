"""The one exception a user can cause."""


class UserError(Exception):
    """Something the user can mend.

    The message is one clear sentence that names the file (or setting) and the remedy. The command line prints it
    without a traceback and exits with code 2; library callers catch it like any exception.
    """


def refuse(problems: list[str]) -> None:
    """Raise one UserError for all of `problems` (sentences); nothing happens when there are none."""
    if len(problems) == 1:
        raise UserError(problems[0])
    if problems:
        raise UserError(f"{len(problems)} problems:\n" + "\n".join(f"  - {problem}" for problem in problems))
