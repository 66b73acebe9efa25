"""The one exception a user can cause."""


class UserError(Exception):
    """Something the user can mend.

    The message is one clear sentence that names the file (or setting) and the remedy. The command line prints it
    without a traceback and exits with code 2; library callers catch it like any exception.
    """
