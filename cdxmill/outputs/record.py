"""What is kept of the outputs in a directory: how each was made, and which archives failed.

`.outputs.tsv` in a local directory has what each output was made from, and with which settings.

    <output> TAB <archive> TAB <settings> TAB <size of the archive> TAB <fingerprint of the output> LF

Rows are only appended: by several processes at the same time, each before its output gets its name. The last row whose
fingerprint matches the output counts. So a row of a run that was killed before the output got its name does no harm.

The archives that failed are in failures.tsv of a local directory, or in a file beside each remote output. An archive stays
listed until an output of it is complete. Its failures are appended before its output appears, and the rows of earlier runs
are removed after it. docs/formats/failures.md describes the rows.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.errors import UsageError
from cdxmill.formats.own_records import BESIDE, FAILURES, OUTPUTS, format_row, parse_row
from cdxmill.outputs.names import identity
from cdxmill.running.failures import Failure
from cdxmill.storage.local import append_rows, make_directory, stopping, write_atomic
from cdxmill.storage.location import Location
from cdxmill.storage.reading import first_bytes

_TAIL = 8
"""Bytes at the end of a gzip file: the CRC32 and the length of its last member."""


_COLUMNS, _HEAD = 4, 1 << 16
"""Of a list of failures: the columns, and the bytes at its start that show whose it is."""


class OutputRow(NamedTuple):
    """A row: `output` is the path below the directory, `archive` an identity (see `output_names`), `settings` a hash."""

    output: str
    archive: str
    settings: str
    size: int
    fingerprint: str


class Fingerprinted:
    """A file to write to that knows the fingerprint of what was written: the size and the last bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._tail = file, b""
        self.size = 0

    def write(self, data: bytes) -> int:
        """Write `data`."""
        self.size += len(data)
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        return self._file.write(data)

    def fingerprint(self) -> str:
        """The fingerprint of all that was written."""
        return _fingerprint(self.size, self._tail)


def fingerprint(path: Path) -> str | None:
    """The fingerprint of a file. None if it is absent, empty or unreadable."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _fingerprint(size, os.pread(file.fileno(), _TAIL, max(size - _TAIL, 0))) if size else None
    except (OSError, ValueError):
        return None


def _fingerprint(size: int, tail: bytes) -> str:
    return f"{size}-{tail.hex()}"


def append_made(directory: Path, *made: OutputRow) -> None:
    """Append rows. Raises StoppedError."""
    append_rows(directory / OUTPUTS, [[*map(str, row)] for row in made])


class OutputRecord:
    """The rows of a directory. Raises StoppedError if they cannot be read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rows: dict[str, list[OutputRow]] = defaultdict(list)
        data = b""
        with stopping(directory / OUTPUTS), suppress(FileNotFoundError):
            data = (directory / OUTPUTS).read_bytes()
        for line in data.split(b"\n"):
            fields = parse_row(line)
            # a killed run may have left half a row
            if len(fields) == len(OutputRow._fields) and fields[3].isdecimal():
                output, archive, settings, size, found = fields
                self._rows[output].append(OutputRow(output, archive, settings, int(size), found))

    def made_from(self, output: Path) -> OutputRow | None:
        """The row of an output. None if it is absent or empty, or if another program wrote it."""
        rows = self._rows.get(output.relative_to(self._directory).as_posix())
        found = fingerprint(output) if rows else None
        return next((made for made in reversed(rows or ()) if made.fingerprint == found), None)


def link_outputs(old: Path, new: Path, outputs: list[str]) -> None:
    """Give outputs of the directory `old` a second name in the directory `new`, and copy their rows. Raises StoppedError.

    Where the file system has no hard links, nothing is done.
    """
    record = OutputRecord(old)
    make_directory(new)
    rows: list[OutputRow] = []
    for output in outputs:
        source, target = old / output, new / output
        with stopping(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                target.hardlink_to(source)
            except OSError:
                continue
        made = record.made_from(source)
        if made is not None:
            rows.append(made)
    append_made(new, *rows)


def failures_beside(output: Location) -> Location:
    """The list of failures beside the output of an archive. Hadoop ignores files with such names.

    >>> str(failures_beside(Location("s3://bucket/x/a.cdx.gz")))
    's3://bucket/x/_a.cdx.gz.failures'
    """
    return output.with_name(f"_{output.name}{BESIDE}")


def list_beside(output: Location, failures: Sequence[Failure]) -> None:
    """Write the failures of an archive beside its output. Raises StoppedError."""
    with failures_beside(output).write_atomic() as file:
        file.writelines(format_row(_row(one)) for one in failures)


def list_in(directory: Path, failures: Sequence[Failure]) -> None:
    """Append the failures of an archive to the list of a local directory. Raises StoppedError."""
    append_rows(directory / FAILURES, map(_row, failures))


def check_failure_list(file: Location) -> None:
    """Raise UsageError if a file with the name of a list of failures is somebody else's. A killed run's row may be cut."""
    *rows, last = first_bytes(file, _HEAD).split(b"\n")
    is_own = all(len(row := parse_row(one)) == _COLUMNS and not row[1].strip("0123456789") for one in rows)
    if not is_own or (last and not rows and b"\t" not in last):
        raise UsageError(f"{file}: is not of cdxmill; move it away, or choose another output directory")


def _row(failure: Failure) -> list[str]:
    offset = "" if failure.offset is None else str(failure.offset)
    return [identity(failure.path), offset, failure.reason, failure.hint]


def failed_in(directory: Path) -> set[str]:
    """The identities of the archives in the list of a directory. Raises StoppedError."""
    return {identity(parse_row(row)[0]) for row in _rows(directory / FAILURES)}


@contextmanager
def forgetting(directory: Path | None, handled: Set[str]) -> Iterator[None]:
    """Write outputs to a local directory. Afterwards, failures of earlier runs are no longer listed.

    `handled` are the identities of the archives that are read. Without a directory, nothing is done. Raises StoppedError.
    """
    if directory is None:
        yield
        return
    listed = directory / FAILURES
    for path in (listed, directory / OUTPUTS):
        _end_last_row(path)
    size = listed.stat().st_size if listed.exists() else 0
    yield
    _forget(directory, size, handled)


def _end_last_row(path: Path) -> None:
    """Add the LF that the last row of a killed run may lack, so that the next row starts on its own line."""
    with stopping(path), suppress(FileNotFoundError), path.open("rb+") as file:
        if file.seek(0, os.SEEK_END) and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
            file.write(b"\n")


def _forget(directory: Path, size: int, handled: Set[str]) -> None:
    """Remove the rows of the archives `handled` from the first `size` bytes of the list: rows of earlier runs.

    `handled` are identities of archives that this run has indexed, or has listed again. Raises StoppedError.
    """
    path = directory / FAILURES
    if handled.isdisjoint(failed_in(directory)):
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
    with stopping(path), suppress(FileNotFoundError), path.open("rb") as file:
        yield from file
