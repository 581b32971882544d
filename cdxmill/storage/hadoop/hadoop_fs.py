"""Files of HDFS through the command `hadoop fs`, for clusters with Kerberos or TLS: it has the tickets and the certificates.

Each command starts a JVM, which takes a second. A file is copied to a temporary file before it is read.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import BoundedSemaphore
from typing import IO

from cdxmill.errors import AbsentError, InputError, RefusedError, StoppedError, UsageError
from cdxmill.messages import say
from cdxmill.storage.entry import Entry
from cdxmill.storage.hadoop.site import NO_TICKET, file_system, hadoop_command, shell_reason, why_no_web_hdfs
from cdxmill.storage.local.files import spooled

_AT_ONCE = BoundedSemaphore(4)
"""Each JVM takes some hundred megabytes."""
_FORM = "%b %Y %F %n"
_ENTRY = re.compile(r"(\d+) (\d+) (regular file|directory) (.*)")
"""A line of `-stat` with _FORM: size, milliseconds since 1970, kind and name."""
_GLOB = re.compile(r"([\\*?\[\]{}])")


def is_needed() -> bool:
    """Whether the configuration rules out WebHDFS. Says it once."""
    if reason := _reason():
        say_once(f"note: {reason}; hadoop fs is used instead of WebHDFS, which takes longer")
    return bool(reason)


def _reason() -> str:
    return _reason_in(os.environ.get("HADOOP_CONF_DIR", ""), os.environ.get("CDXMILL_WEBHDFS", ""))


@lru_cache(maxsize=8)
def _reason_in(folder: str, addresses: str) -> str:
    try:
        return why_no_web_hdfs()
    except UsageError:  # whoever needs the configuration reports it
        return ""


@lru_cache(maxsize=64)
def say_once(text: str) -> None:
    """Print a line on stderr, unless it was printed before."""
    say(text)


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open the file at `url`: `read_at(offset, size)` returns fewer bytes only at the end of the file.

    Raises AbsentError, RefusedError or InputError if it cannot be read, StoppedError if it cannot be copied.
    """
    found = status(url)
    if found is None:
        raise AbsentError(url, "cannot be read (no such file)", "check the path")
    if found.is_folder:
        raise InputError(url, "is a directory", "name a file, or a directory with archives")
    with spooled() as file:
        _run(url, "-cat", _quoted(url), output=file)
        if file.seek(0, os.SEEK_END) != found.size:
            raise InputError(url, "has changed while it was read", "run it again")
        yield lambda offset, size: os.pread(file.fileno(), size, offset)


def file_size(url: str) -> int:
    """The size of a file in bytes; 0 if it is unknown."""
    try:
        found = status(url)
    except InputError:
        return 0
    return found.size if found else 0


@contextmanager
def write_atomic(url: str) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its folder is created. Raises StoppedError."""
    with spooled() as file:
        yield file
        try:
            try:
                _put(url, file)
            except AbsentError:  # its folder
                _run(url, "-mkdir", "-p", _quoted(posixpath.dirname(url)))
                _put(url, file)
        except InputError as error:
            raise _stopped(url, "written", error) from None


def _put(url: str, file: IO[bytes]) -> None:
    file.seek(0)
    _run(url, "-put", "-f", "-", _quoted(url), given=file)  # writes another name, and renames it


def status(url: str) -> Entry | None:
    """The size and time of a file or folder; None if it does not exist. Raises InputError."""
    try:
        return next(iter(_entries(url, _quoted(url)).values()), None)
    except AbsentError:
        return None


def list_folder(url: str) -> dict[str, Entry]:
    """The entries of a folder by name; none if it does not exist. Raises InputError."""
    try:
        return _entries(url, _quoted(url.rstrip("/")) + "/*")
    except AbsentError:
        return {}


def _entries(url: str, pattern: str) -> dict[str, Entry]:
    lines = _run(url, "-stat", _FORM, pattern).decode("utf-8", "surrogateescape").split("\n")
    found = [match.groups() for line in lines if (match := _ENTRY.fullmatch(line))]
    return {name: Entry(int(size), int(time) / 1000, kind == "directory") for size, time, kind, name in found}


def remove(url: str) -> None:
    """Delete a file, or an empty folder, if it exists. Raises StoppedError."""
    try:
        found = status(url)
        if found is not None:
            words = ("-rmdir",) if found.is_folder else ("-rm", "-f", "-skipTrash")
            _run(url, *words, _quoted(url))
    except InputError as error:
        raise _stopped(url, "deleted", error) from None


def remove_tree(url: str) -> None:
    """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError."""
    try:
        _run(url, "-rm", "-r", "-f", "-skipTrash", _quoted(url))
    except InputError as error:
        raise _stopped(url, "deleted", error) from None


def move(url: str, target: str) -> None:
    """Rename a file or directory. Raises StoppedError.

    A file or an empty directory at `target` is deleted first: `hadoop fs` cannot replace it, and moves into a directory.
    """
    try:
        if status(url) is None:
            raise AbsentError(url, "no such file", "check the path")
        remove(target)
        _run(url, "-mv", _quoted(url), _quoted(target))
    except InputError as error:
        raise _stopped(url, "renamed", error) from None


def same_location(one: str, other: str) -> bool:
    """Whether two URLs are the same file or folder."""
    parts = [url.partition("://")[2].partition("/") for url in (one, other)]
    places = [(file_system(name), posixpath.normpath("/" + path.lstrip("/"))) for name, _, path in parts]
    return places[0] == places[1]


def _stopped(url: str, done: str, error: InputError) -> StoppedError:
    return StoppedError(f"{url}: cannot be {done}: {error.reason}; {error.hint}")


def _quoted(url: str) -> str:
    """The URL, for a command that would take some of its characters for a pattern."""
    return _GLOB.sub(r"\\\1", url)


def _run(url: str, *words: str, given: IO[bytes] | None = None, output: IO[bytes] | None = None) -> bytes:
    """What `hadoop fs` prints. Raises AbsentError, RefusedError, InputError."""
    command = hadoop_command()
    if not command:
        raise InputError(
            url,
            f"{_reason()}, and there is no hadoop command",
            "set HADOOP_HOME",
        )
    with _AT_ONCE:
        done = subprocess.run(
            [command, "fs", *words],
            check=False,
            stdin=given or subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    if done.returncode:
        raise _error(url, words[0], done.stderr.decode("utf-8", "replace"))
    return done.stdout or b""


def _error(url: str, verb: str, told: str) -> InputError:
    reason = shell_reason(told) or "no reason given"
    if reason.endswith(": No such file or directory"):
        return AbsentError(url, "cannot be read (no such file)", "check the path")
    if reason == NO_TICKET:
        return RefusedError(url, *reason.split(": "))
    kind = RefusedError if "Permission denied" in reason else InputError
    return kind(url, f"hadoop fs {verb} failed ({reason[:300]})", "correct this and run it again")
