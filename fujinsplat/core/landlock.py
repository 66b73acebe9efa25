"""Landlock, Linux's own fence for one process and its children, by system call: Python has no binding for it.

An allow-list: a process that has put itself behind it opens for reading only what lies below folders named before.
Needs no rights; kernels before 5.13, or built or started without it, have none. Tested with ABI 1 to 7.
"""

import ctypes
import os
from collections.abc import Callable

VERSIONS = "Linux 5.13 to 6.18"
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ABI_QUERY, PATH_BENEATH = 1, 1
READ_FILE, REFER = 1 << 2, 1 << 13  # REFER: renames between folders, which would otherwise stop (from ABI 2)
NO_NEW_PRIVILEGES = 38


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def _call(number: int, *arguments) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def version() -> int:
    """The ABI of this kernel; 0 where there is none."""
    if os.uname().sysname != "Linux":
        return 0
    try:
        return _call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(ABI_QUERY))
    except OSError:
        return 0


def read_only_below(walk: Callable[[Callable[[str], None]], None]) -> None:
    """From now on this process reads only files below what `walk` names, calling its argument for each path.

    To be called while there is one thread: the fence holds for the caller and what it starts later.
    """
    handled = READ_FILE | (REFER if version() >= 2 else 0)
    attributes = ctypes.c_uint64(handled)
    ruleset = _call(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(8), ctypes.c_uint32(0))
    try:

        def allow(path: str) -> None:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return  # gone meanwhile, or nobody's to open
            try:
                rights = handled if os.path.isdir(f"/proc/self/fd/{fd}") else READ_FILE
                rule = _Beneath(rights, fd)
                _call(
                    ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0)
                )
            except OSError:
                return  # no file of a kind that can be fenced, such as a link
            finally:
                os.close(fd)

        walk(allow)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
