"""Messages on stderr: what comes from others is made harmless, and numbers are readable.

This module imports nothing of the package but `regex`, so that every directory may use it.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import NamedTuple

from cdxmill.regex import regex

_HIDDEN = regex(
    "[\x00-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of the text
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # line ends of Unicode, and characters without a form
    "\ud800-\udfff\U000e0000-\U000e007f]"  # bytes that are no UTF-8, and invisible copies of ASCII
)
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers of a full disk."""
_WRONG_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EROFS)
_NO_RIGHT = (errno.EACCES, errno.EPERM)


def write_advice(number: int | None) -> str:
    """What to do if an output cannot be written, by the errno.

    >>> for name in ("EDQUOT", "ENAMETOOLONG", "EROFS", "EPERM", "EFBIG", "EIO"):
    ...     print(write_advice(getattr(errno, name)).partition(",")[0])
    free space
    choose a shorter name
    choose another directory
    change the access rights or choose another directory
    raise the limit on the size of files
    fix it
    """
    if number in FULL:
        return "free space, then run it again"
    if number == errno.ENAMETOOLONG:
        return "choose a shorter name, then run it again"
    if number in _WRONG_PLACE:
        return "choose another directory, then run it again"
    if number in _NO_RIGHT:
        return "change the access rights or choose another directory, then run it again"
    if number == errno.EFBIG:
        return "raise the limit on the size of files, then run it again"
    return "fix it, then run it again"


def printable(text: str) -> str:
    r"""`text` for a terminal: invisible characters and those that control it are written as \t, \n, \r, \xNN or \uNNNN.

    A byte of a file name that is not UTF-8 is written as \xNN.

    >>> printable("a\x1b[2Jb\n\udcff\u202ec") == r"a\x1b[2Jb\n\xff\u202ec"
    True
    """
    return _HIDDEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # os.fsdecode
        number -= 0xDC00
    if number < 0x100:
        return _SHORT.get(character, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def say(text: str) -> None:
    """Print a line on stderr. If stderr is closed or full, the exit status has to be enough."""
    _write(printable(text))


_notes = {"are printed": False}


def print_notes() -> None:
    """Let `note` print, as commands do. Functions of the API and nodes of a cluster print nothing of their own."""
    _notes["are printed"] = True


def note(text: str) -> None:
    """Print a line on stderr about a wait, if this is a command."""
    if _notes["are printed"]:
        say(text)


def say_lines(text: str) -> None:
    """Print lines on stderr, as `say` does."""
    _write("\n".join(map(printable, text.split("\n"))))


def fail(reason: object, status: int) -> int:
    """Print in one line why a script ends. Returns its exit status."""
    say(str(reason).replace("\n", " "))
    return status


def _write(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # the text stays in the buffer, and Python would fail at its exit
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the rest of the process


def human_bytes(size: float) -> str:
    """
    >>> [human_bytes(size) for size in (5, 1023, 1024, 1536, 3 << 30, 1 << 60)]
    ['5 B', '1023 B', '1.0 KiB', '1.5 KiB', '3.0 GiB', '1048576.0 TiB']
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def human_seconds(seconds: float) -> str:
    """
    >>> human_seconds(0.4), human_seconds(7), human_seconds(200), human_seconds(7300)
    ('under 1 s', '7 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 1:
        return "under 1 s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "archive"), count(0, "archive")
    ('1 archive', '0 archives')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


class Step(NamedTuple):
    """How far a step of a run is: items that are done, of `total`; bytes that were read, of `total_bytes` (0: unknown).

    `name` says what is done, such as "indexing", and `failures` how many there are so far.
    """

    name: str
    done: int
    total: int
    bytes: int
    total_bytes: int
    failures: int
