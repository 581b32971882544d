"""The archives that failed: failures.tsv in a local folder of indexes, or a file beside each remote output.

An archive stays listed until an index of it is complete. Its failures are appended before its output appears, and the rows
of earlier runs are removed after it. docs/formats/failures.md describes the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from cdxmill.formats.own_records import BESIDE, FAILURES
from cdxmill.formats.tsv_row import format_row, parse_row
from cdxmill.outputs.names import identity
from cdxmill.running.failures import Failure
from cdxmill.storage.choose import PathOrUrl
from cdxmill.storage.choose import write_atomic as write_anywhere
from cdxmill.storage.local.files import append_rows, stopping, write_atomic


def failures_beside(output: PathOrUrl) -> str:
    """The URL of the list of failures beside the output of an archive. Hadoop ignores files with such names.

    >>> failures_beside("s3://bucket/x/a.cdx.gz")
    's3://bucket/x/_a.cdx.gz.failures'
    """
    folder, slash, name = str(output).rpartition("/")
    return f"{folder}{slash}_{name}{BESIDE}"


def list_beside(output: str, failures: Sequence[Failure]) -> None:
    """Write the failures of an archive beside its output. Raises StoppedError."""
    with write_anywhere(failures_beside(output)) as file:
        file.writelines(format_row(_row(one)) for one in failures)


def list_in(folder: Path, failures: Sequence[Failure]) -> None:
    """Append the failures of an archive to the list of a local folder. Raises StoppedError."""
    append_rows(folder / FAILURES, map(_row, failures))


def _row(failure: Failure) -> list[str]:
    offset = "" if failure.offset is None else str(failure.offset)
    return [identity(failure.path), offset, failure.reason, failure.hint]


def failed_in(folder: Path) -> set[str]:
    """The identities of the archives in the list of a folder. Raises StoppedError."""
    return {identity(parse_row(row)[0]) for row in _rows(folder / FAILURES)}


def forget(folder: Path, size: int, handled: Set[str]) -> None:
    """Remove the rows of the archives `handled` from the first `size` bytes of the list: rows of earlier runs.

    `handled` are identities of archives that this run has indexed, or has listed again. Raises StoppedError.
    """
    path = folder / FAILURES
    if handled.isdisjoint(failed_in(folder)):
        return
    offset = 0
    with write_atomic(path) as file:
        for row in _rows(path):
            if offset >= size or identity(parse_row(row)[0]) not in handled:
                file.write(row)
            offset += len(row)
    with stopping(path):
        if not path.stat().st_size:
            path.unlink()


def _rows(path: Path) -> Iterator[bytes]:
    with stopping(path):
        if path.exists():
            with path.open("rb") as file:
                yield from file
