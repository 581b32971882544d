"""Files of split points: text, and Hadoop's SequenceFile beside it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import suppress

from cdxmill.errors import InputError, UsageError, of_named_file
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text, parse
from cdxmill.inputs.pipes import unpiped
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.reading import bytes_if_any

SPLITS = ("splits.txt", "splits.seq")
"""Their names in the directory of a cluster."""


def write_splits(points: Sequence[bytes], path: PathOrUrl, kind: str = ".txt") -> None:
    """Write split points twice: as text, which ends in `.txt`, and as a SequenceFile, which ends in `.seq`.

    One is at `path`, a path or URL, and the other beside it. If `path` has another ending, it is of the given kind.
    A SequenceFile of other points is removed first: a run that is killed leaves no two files of different points.
    """
    locate(_names(path, kind)[1]).remove()
    for name, is_text in zip(_names(path, kind), (True, False), strict=True):
        with locate(name).write_atomic() as file:
            file.write(_formatted(points, is_text))


def write_points(points: Sequence[bytes], path: PathOrUrl, is_text: bool) -> None:
    """Write one file of split points, which the user named."""
    with locate(path).write_named() as file:
        file.write(_formatted(points, is_text))


def _formatted(points: Sequence[bytes], is_text: bool) -> bytes:
    return format_text(points) if is_text else format_sequence_file(points)


def check_splits(path: PathOrUrl, kind: str = ".txt", *, replace: bool) -> None:
    """Raise UsageError if `write_splits` cannot write there, or would overwrite a file that may not be replaced."""
    for place in split_files(path, kind):
        place.check_writable()
        place.check_absent(replace=replace)


def split_files(path: PathOrUrl, kind: str = ".txt") -> list[Location]:
    """The two files that `write_splits` writes."""
    return [locate(name) for name in _names(path, kind)]


def _names(path: PathOrUrl, kind: str) -> tuple[str, str]:
    """The text file and the SequenceFile."""
    stem, ending = posixpath.splitext(str(path))
    kind = ending if ending in (".txt", ".seq") else kind
    return (str(path), f"{stem}.seq") if kind == ".txt" else (f"{stem}.txt", str(path))


def read_splits(path: PathOrUrl) -> list[bytes]:
    """The split points in a file that the user named: at a path or URL, or in a pipe. Raises UsageError, StoppedError."""
    try:
        with unpiped(str(path)) as place:
            return parse(place.read_bytes())
    except InputError as error:
        raise of_named_file(error) from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def stored_splits(file: Location) -> list[bytes] | None:
    """The split points in a file of a cluster, which is no pipe. None if it is missing or corrupt. Raises OutageError."""
    data = bytes_if_any(file)
    with suppress(ValueError):
        return None if data is None else parse(data)
    return None
