"""Files of HDFS through the command `hadoop fs`, for clusters with Kerberos or TLS: it has the tickets and the certificates.

Each command starts a JVM, which takes a second. A file is copied to a temporary file before it is read.
The jobs on Hadoop use these functions for other URLs, too: the command has the keys of the job.
"""

from __future__ import annotations

import os
import posixpath
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import IO

from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, StoppedError, absent
from cdxmill.regex import regex
from cdxmill.storage.hadoop.site import STAMP, hadoop_command, why_no_web_hdfs
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import read_fully, spooled, temporary_name
from cdxmill.storage.patience import stops

_AT_ONCE = BoundedSemaphore(4)
"""Each JVM takes some hundred megabytes."""
_COMMAND = 128 << 10
"""Bytes of the names in one command: `hadoop` passes them on to a command line of Java."""
_FORM = "%b %Y %F %n"
_ENTRY = regex(r"(\d+) (\d+) (regular file|directory) (.*)")
"""A line of `-stat` with _FORM: size, milliseconds since 1970, kind and name."""
_LISTED = regex(r"-\S* +\S+ +\S+ +\S+ +(\d+) +\S+ +\S+ (.+)")
"""A file in the output of `-ls -R`: its size and URL."""
_SMALL = 1 << 16
"""Bytes that are compared of a small file."""
_GLOB = regex(r"([\\*?\[\]{}])")
_ABSENT = ": No such file or directory"
_DIRECTORY = ": Is a directory"
_DETAILS = regex(r" \(Service: |; For more details see")
"""Begins the part of a message of Hadoop that is not shown."""
_NO_TICKET = ("Client cannot authenticate via", "GSS initiate failed")
_PRIVATE = ("-D", "fs.permissions.umask-mode=077")


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file (see `Location.open_ranges`). Raises StoppedError if it cannot be copied.

    The status of the command says whether all of it was copied: to ask for the size would take another one.
    """
    with spooled() as file:
        _run(url, "-cat", quoted(url), output=file)
        yield lambda offset, size: read_fully(file.fileno(), offset, size)


def fetch(patterns: Sequence[str], directory: Path) -> None:
    """Copy files to a directory of this machine with few commands. Raises InputError if one of them cannot be copied."""
    errors: list[InputError] = []
    for batch in _batches(patterns):
        try:
            _run(batch[0], "-get", *batch, str(directory))
        except InputError as error:  # the other files are copied all the same
            errors.append(error)
    if errors:
        raise errors[0]


@contextmanager
def write_atomic(url: str, stamp: Callable[[], str] | None = None) -> Iterator[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its directory is created. Raises StoppedError.

    A stamp takes three more commands: only a file with another name can have one before it gets its name.
    """
    with spooled() as file:
        yield file
        if stamp is None:
            put(file, url)
            return
        directory, name = posixpath.split(url)
        temporary = f"{directory}/{temporary_name(name)}"
        try:
            put(file, temporary)
            with suppress(InputError):  # HDFS may be set up without extended attributes
                _run(url, "-setfattr", "-n", STAMP, "-v", stamp(), quoted(temporary))
            with stops(url, "written"):
                _run(url, "-rm", "-f", "-skipTrash", quoted(url))
                _run(url, "-mv", quoted(temporary), quoted(url))
        except BaseException:
            with suppress(InputError):
                _run(url, "-rm", "-f", "-skipTrash", quoted(temporary))
            raise


def put(file: IO[bytes], url: str, *, is_private: bool = False) -> None:
    """Write the content of an open file, as `write_atomic` does. A private file may be read by its owner only."""
    words = (*(_PRIVATE if is_private else ()), "-put", "-f", "-", quoted(url))
    with stops(url, "written"):
        try:
            file.seek(0)
            _run(url, *words, given=file)  # writes another name, and renames it
        except AbsentError:  # its directory
            make(posixpath.dirname(url))
            file.seek(0)
            _run(url, *words, given=file)


def swap(url: str, known: bytes | None, data: bytes) -> bool:
    """Write a small file (see `Location.swap`). A file with a known content is read, compared and replaced, in two steps."""
    if known is not None and _content(url) != known:
        return False
    directory, name = posixpath.split(url)
    temporary = url if known is not None else f"{directory}/{temporary_name(name)}"
    with write_atomic(temporary) as file:
        file.write(data)
    if known is not None:
        return True
    try:
        with stops(url, "written"):
            _run(url, "-mv", quoted(temporary), quoted(url))
    except StoppedError:
        remove_tree(temporary)
        if _content(url) is None:
            raise
        return False
    return True


def _content(url: str) -> bytes | None:
    try:
        with open_ranges(url) as read_at:
            return read_at(0, _SMALL)
    except AbsentError:
        return None


def upload(paths: Sequence[Path], url: str) -> None:
    """Copy files of this machine into a directory, which exists, with one command. Raises StoppedError."""
    # an S3 object is visible only when it is complete: -d writes the final name
    direct = ["-d"] if url.startswith(("s3:", "s3a:")) else []
    with stops(url, "written"):
        for batch in _batches([path.absolute().as_uri() for path in paths]):
            _run(url, "-put", "-f", *direct, *batch, f"{url.rstrip('/')}/")


def make(url: str) -> None:
    """Create a directory and those above it, unless it exists. Raises StoppedError."""
    with stops(url, "created"):
        _run(url, "-mkdir", "-p", quoted(url))


def status(url: str) -> Entry | None:
    """The size and time of a file or directory. None if it does not exist. Raises InputError."""
    return next(iter(_entries(url, quoted(url)).values()), None)


def stamped(url: str) -> tuple[Entry | None, str]:
    """The size and time of a file, None if it does not exist, and its stamp. Raises InputError."""
    entry = status(url)
    if entry is None:
        return None, ""
    start = f'{STAMP}="'
    try:
        lines = _lines(url, "-getfattr", "-d", quoted(url))
    except InputError:
        lines = []
    return entry, next((line[len(start) : -1] for line in lines if line.startswith(start)), "")


def list_directory(url: str) -> dict[str, Entry]:
    """The entries of a directory by name. Empty if it does not exist. Raises InputError."""
    return _entries(url, quoted(url.rstrip("/")) + "/*")


def _entries(url: str, pattern: str) -> dict[str, Entry]:
    found = map(_ENTRY.fullmatch, _lines(url, "-stat", _FORM, pattern))
    parts = (match.groups() for match in found if match)
    return {
        name: Entry(int(size), int(time) / 1000, kind == "directory", time)
        for size, time, kind, name in parts
    }


def sized_files(pattern: str) -> dict[str, int]:
    """The URLs of all files below everything that matches, with their sizes. Raises InputError."""
    found = map(_LISTED.fullmatch, _lines(pattern, "-ls", "-R", pattern))
    return {match[2]: int(match[1]) for match in found if match}


def remove(url: str) -> None:
    """Delete a file, or an empty directory, if it exists. Raises StoppedError."""
    with stops(url, "deleted"):
        try:
            _run(url, "-rm", "-f", "-skipTrash", quoted(url))
        except InputError:
            found = status(url)
            if found is None or not found.is_directory:
                raise
            _run(url, "-rmdir", quoted(url))


def remove_tree(*urls: str) -> None:
    """Delete files, and directories with all that is below them, if they exist. Raises StoppedError."""
    with stops(urls[0], "deleted"):
        for batch in _batches(list(map(quoted, urls))):
            _run(batch[0], "-rm", "-r", "-f", "-skipTrash", *batch)


def move(url: str, target: str) -> None:
    """Rename a file or directory. A file or an empty directory at `target` is deleted first, as it cannot be replaced."""
    with stops(url, "renamed"):
        if status(url) is None:
            raise AbsentError(url, "no such file", "check the path")
        remove(target)
        _run(url, "-mv", quoted(url), quoted(target))


def copy_mode(url: str, target: str) -> None:
    """Give a directory the access rights of another one, if that exists. Raises StoppedError."""
    with stops(target, "given access rights"):
        mode = _lines(url, "-stat", "%a", quoted(url))[:1]
        if mode:
            _run(target, "-chmod", *mode, quoted(target))


def _batches(words: Sequence[str]) -> Iterator[list[str]]:
    """The words in lists, each for one command: the system limits the size of a command line."""
    batch: list[str] = []
    size = 0
    for word in words:
        size += len(os.fsencode(word)) + 1
        if batch and size > _COMMAND:
            yield batch
            batch, size = [], len(os.fsencode(word)) + 1
        batch.append(word)
    if batch:
        yield batch


def quoted(url: str) -> str:
    """The URL, for a command that would take some of its characters for a pattern."""
    return _GLOB.sub(r"\\\1", url)


def _lines(url: str, *words: str) -> list[str]:
    """The lines that `hadoop fs` prints. Empty if the file does not exist. Raises InputError."""
    try:
        return _run(url, *words).decode("utf-8", "surrogateescape").split("\n")
    except AbsentError:
        return []


def _run(url: str, *words: str, given: IO[bytes] | None = None, output: IO[bytes] | None = None) -> bytes:
    """What `hadoop fs` prints. Raises AbsentError, RefusedError, InputError."""
    command = hadoop_command()
    if not command:
        reasons = [why_no_web_hdfs(), "there is no hadoop command"]
        hint = "set HADOOP_HOME (for the tasks of a job: --cmdenv HADOOP_HOME=DIR)"
        raise OutageError(url, ", and ".join(filter(None, reasons)), hint)
    with _AT_ONCE:
        done = subprocess.run(
            [*command, "fs", *words],
            check=False,
            stdin=given or subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    if done.returncode:
        verb = next(word for word in words if word not in _PRIVATE)
        raise _error(url, verb, done.stderr.decode("utf-8", "replace"))
    return done.stdout or b""


def _error(url: str, verb: str, told: str) -> InputError:
    """The error for the last message of a command. Hadoop names both hosts for a missing ticket, but not the ticket."""
    last = told.strip().split("\n")[-1]
    if any(sign in last for sign in _NO_TICKET):
        return RefusedError(url, "there is no valid Kerberos ticket", "run kinit")
    if last.endswith(_ABSENT):
        return absent(url)
    if verb == "-cat" and last.endswith(_DIRECTORY):
        return InputError(url, "is a directory", "name a file, or a directory with archives")
    kind = RefusedError if "Permission denied" in last else OutageError  # also a full disk of this machine
    reason = _DETAILS.split(last)[0][:300] or "no reason given"
    return kind(url, f"hadoop fs {verb} failed ({reason})", "correct this and run it again")
