"""Files of split points: text, and Hadoop's SequenceFile beside it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text, parse
from cdxmill.storage.choose import (
    PathOrUrl,
    check_absent,
    read_bytes,
    write_atomic,
)

SPLITS = ("splits.txt", "splits.seq")
"""Their names in the folder of a cluster."""


def write_splits(points: Sequence[bytes], path: PathOrUrl) -> None:
    """Write split points as text to a path or URL, and as a SequenceFile, which ends in `.seq`, beside it.

    If `path` itself ends in `.seq`, it is the SequenceFile, and the text beside it ends in `.txt`.
    """
    text, sequence = _names(path)
    with write_atomic(text) as file:
        file.write(format_text(points))
    with write_atomic(sequence) as file:
        file.write(format_sequence_file(points))


def check_splits_absent(path: PathOrUrl) -> None:
    """Raise UsageError if `write_splits` would overwrite a file."""
    for name in _names(path):
        check_absent(name)


def _names(path: PathOrUrl) -> tuple[str, str]:
    """The text file and the SequenceFile."""
    stem, ending = posixpath.splitext(str(path))
    return f"{stem}.txt" if ending == ".seq" else str(path), f"{stem}.seq"


def read_splits(path: PathOrUrl) -> list[bytes]:
    """The split points in a text file or SequenceFile, at a path or URL. Raises UsageError."""
    try:
        return parse(read_bytes(path))
    except InputError as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
