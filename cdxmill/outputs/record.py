"""What is kept of the outputs in a directory: how each was made, and which archives failed.

`.outputs.tsv` in a local directory has what each output was made from, with which settings, and what it is then.

    <output> TAB <archive> TAB <settings> TAB <state of the archive> TAB <size> TAB <SHA-256> TAB <time> LF

Rows are only appended: by several processes at the same time, each before its output gets its name. The last row that
matches the output counts. So a row of a run that was killed before the output got its name does no harm. A row matches if
size and time are those of the output, or if the size and the SHA-256 are: the output is read only if its time differs.

A remote output carries its row itself, without the name and the time, as its stamp (see `Location.stamped`): both
appear in one step, and a program that replaces the output takes the row away with it.

The archives that failed are in failures.tsv of a local directory, or in a file beside each remote output. An archive stays
listed until an output of it is complete. Its failures are appended before its output appears, and the rows of earlier runs
are removed after it. docs/formats/failures.md describes the rows.

Outputs that are parts of a table, `scan --to parquet`, have these records in the directory `_cdxmill` below: programs that
read the table take each file beside the outputs for a part of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote_from_bytes, unquote

from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.own_records import APART, BESIDE, FAILURES, OUTPUTS, TABLE, format_row, parse_row
from cdxmill.inputs.named import Input
from cdxmill.messages import count
from cdxmill.outputs.names import identity
from cdxmill.running.failures import Failure
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import make_directory, stopping, write_atomic
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.own import append_rows, foreign, open_own, own_directory, read_own
from cdxmill.storage.reading import first_bytes, sha256_of, written

_LONGEST = 1000, 100
"""Characters of an archive and of the tag of its state in a row. A stamp has at most 2000."""
_DIGITS = 20
"""More than a size or a time has."""
_COLUMNS, _HEAD = 4, 1 << 16
"""Of a list of failures: the columns, and the bytes at its start that show whose it is."""


def records_of(directory: Path) -> Path:
    """Where the records of a local directory are."""
    apart = directory / APART
    return apart if apart.is_dir() and not apart.is_symlink() else directory


def keep_apart(directory: Path) -> None:
    """Keep the records of a local directory in a directory of their own, also those of earlier runs.

    Raises UsageError if its name is taken, StoppedError.
    """
    old, new = records_of(directory), directory / APART
    own_directory(new)
    for name in (FAILURES, OUTPUTS) if old != new else ():
        with stopping(new), suppress(FileNotFoundError):
            (old / name).rename(new / name)


class OutputRow(NamedTuple):
    """A row: `output` is the path below the directory, `archive` as `recorded` gives it, `settings` a hash.

    `state` is that of the archive when it was read; `size`, `sha256` and `time` (in ns) are of the output.
    """

    output: str
    archive: str
    settings: str
    state: str
    size: int
    sha256: str
    time: int

    def stamp(self) -> str:
        """The row as a remote output carries it."""
        fields = self.archive, self.settings, self.state, str(self.size), self.sha256
        return " ".join(quote_from_bytes(os.fsencode(field)) for field in fields)


def row_of_stamp(text: str) -> OutputRow | None:
    """The row that `stamp` gave. None if it is not one."""
    fields = [unquote(field, errors="surrogateescape") for field in text.split(" ")]
    return _row_of(["", *fields, "0"])


def _row_of(fields: list[str]) -> OutputRow | None:
    if len(fields) != len(OutputRow._fields):
        return None
    output, archive, settings, state, size, sha256, time = fields
    if not all(number.isdecimal() and len(number) < _DIGITS for number in (size, time)):
        return None
    return OutputRow(output, archive, settings, state, int(size), sha256, int(time))


def recorded(archive: Location) -> str:
    """How a row names an archive: by its identity, or by a hash of one that is very long."""
    text = identity(archive)
    if len(quote_from_bytes(os.fsencode(text))) <= _LONGEST[0]:
        return text
    return f"sha256:{hashlib.sha256(os.fsencode(text)).hexdigest()}"


def state_of(entry: Entry | None) -> str:
    """The size and the tag of an archive, which differ for each version of it. "" if it does not exist."""
    return "" if entry is None else f"{entry.size}-{entry.tag[: _LONGEST[1]]}"


class Summed:
    """A file to write to that knows the size and the SHA-256 of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sum = file, hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Write `data`."""
        self.size += len(data)
        self._sum.update(data)
        return self._file.write(data)

    def sha256(self) -> str:
        """The SHA-256 of all that was written, in hexadecimal digits."""
        return self._sum.hexdigest()

    def is_on_disk(self) -> bool:
        """Whether the disk has what was written. True for a file that is uploaded later. Raises OSError, InputError."""
        return written(self._file) in (None, self.sha256())

    def time(self) -> int:
        """The time of a local file when all is written, in ns."""
        self._file.flush()
        return os.fstat(self._file.fileno()).st_mtime_ns


def append_made(directory: Path, *made: OutputRow) -> None:
    """Append rows. Raises StoppedError."""
    append_rows(records_of(directory) / OUTPUTS, [[*map(str, row)] for row in made])


class OutputRecord:
    """The rows of a local directory, or, without one, of remote outputs. Raises StoppedError if they cannot be read."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._rows: dict[str, list[OutputRow]] = defaultdict(list)
        self._touched: list[OutputRow] = []
        data = b""
        if directory is not None:
            with stopping(records_of(directory) / OUTPUTS):
                data = read_own(records_of(directory) / OUTPUTS)
        for line in data.split(b"\n"):
            if row := _row_of(parse_row(line)):  # a killed run may have left half a row
                self._rows[row.output].append(row)

    def last_rows(self) -> list[OutputRow]:
        """The last row of each output, whether it exists or not."""
        return [rows[-1] for rows in self._rows.values()]

    def made_from(self, output: Location) -> OutputRow | None:
        """The row of an output. None if it is absent or empty, or if it is not as cdxmill wrote it.

        Raises InputError if its storage does not answer.
        """
        if self._directory is None:
            entry, stamp = output.stamped()
            row = row_of_stamp(stamp)
            return row if row and entry and row.size == entry.size else None
        path = Path(output.local)
        rows = self._rows.get(path.relative_to(self._directory).as_posix())
        return self._matching(path, rows) if rows else None

    def _matching(self, path: Path, rows: list[OutputRow]) -> OutputRow | None:
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        same = [row for row in reversed(rows) if row.size == found.st_size > 0]
        row = next((row for row in same if row.time == found.st_mtime_ns), None)
        if row is None and same:
            sha256 = sha256_of(Location(str(path)))
            row = next((row for row in same if row.sha256 == sha256), None)
            if row is not None:
                self._touched.append(row._replace(time=found.st_mtime_ns))
        return row

    def keep_times(self) -> None:
        """Append the rows of outputs that had to be read because their time had changed. Else they are read again."""
        if self._directory is not None:
            with suppress(StoppedError):  # the directory is read-only
                append_made(self._directory, *self._touched)


def without_outputs(archives: Sequence[Input], target: PathOrUrl, note: Callable[[str], None]) -> list[Input]:
    """The archives without those in the local directory `target` that were made from others of them. Raises StoppedError.

    So a run whose outputs are in a directory of its inputs can be repeated.
    """
    place = locate(target)
    if place.is_remote:
        return list(archives)
    directory = place.absolute()
    record, sources = OutputRecord(Path(directory)), {recorded(archive.location) for archive in archives}

    def is_output(archive: Input) -> bool:
        path = archive.location.absolute()
        made = record.made_from(Location(path)) if path.startswith(f"{directory}/") else None
        return made is not None and made.archive in sources

    kept = [archive for archive in archives if not is_output(archive)]
    if left := len(archives) - len(kept):
        note(
            f"{target}: note: {count(left, 'archive')} there came from other inputs of this run, and will not be read"
        )
    return kept


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
        made = record.made_from(Location(str(source)))
        if made is not None:
            rows.append(made)
    append_made(new, *rows)


def failures_beside(output: Location) -> Location:
    """The list of failures beside the output of an archive. Hadoop ignores files with such names.

    >>> str(failures_beside(Location("s3://bucket/x/a.cdx.gz")))
    's3://bucket/x/_a.cdx.gz.failures'
    >>> str(failures_beside(Location("s3://bucket/x/a.parquet")))
    's3://bucket/x/_cdxmill/_a.parquet.failures'
    """
    name = f"_{output.name}{BESIDE}"
    return output.with_name(f"{APART}/{name}" if output.name.endswith(TABLE) else name)


def list_beside(output: Location, failures: Sequence[Failure]) -> None:
    """Write the failures of an archive beside its output. Raises StoppedError."""
    with failures_beside(output).write_atomic() as file:
        file.writelines(format_row(_row(one)) for one in failures)


def list_in(directory: Path, failures: Sequence[Failure]) -> None:
    """Append the failures of an archive to the list of a local directory. Raises StoppedError."""
    append_rows(records_of(directory) / FAILURES, map(_row, failures))


def check_own_records(directory: Path) -> None:
    """Raise UsageError if a file with the name of a record in a local directory is somebody else's.

    Raises StoppedError if one cannot be written: that would show only after an archive was read.
    """
    check_failure_list(Location(str(records_of(directory) / FAILURES)))
    for one in (records_of(directory) / FAILURES, records_of(directory) / OUTPUTS):
        with stopping(one):
            if one.exists() and not os.access(one, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    path = records_of(directory) / OUTPUTS
    *rows, last = _head(Location(str(path))).split(b"\n")
    is_cut = not rows and (not last or b"\t" in last)
    if not (is_cut or any(_row_of(parse_row(one)) for one in rows)):
        raise foreign(path)


def _head(file: Location) -> bytes:
    """The first bytes of a file, b"" if it is missing. Raises UsageError if it is a link on a disk; StoppedError."""
    if file.is_remote:
        return first_bytes(file, _HEAD)
    path, absent = Path(file.local), (FileNotFoundError, NotADirectoryError)
    with stopping(path), suppress(*absent), os.fdopen(open_own(path, os.O_RDONLY), "rb") as opened:
        return opened.read(_HEAD)
    return b""


def check_failure_list(file: Location) -> None:
    """Raise UsageError if a file with the name of a list of failures is somebody else's. A killed run's row may be cut."""
    *rows, last = _head(file).split(b"\n")
    is_own = all(len(row := parse_row(one)) == _COLUMNS and not row[1].strip("0123456789") for one in rows)
    path, *cut = last.split(b"\t")
    is_cut = bool(cut) and not cut[0].strip(b"0123456789")
    if not is_own or (path and not rows and not is_cut):
        raise UsageError(f"{file}: is not of cdxmill; move it away, or choose another output directory")


def _row(failure: Failure) -> list[str]:
    offset = "" if failure.offset is None else str(failure.offset)
    return [identity(failure.path), offset, failure.reason, failure.hint]


def failed_in(directory: Path) -> set[str]:
    """The identities of the archives in the list of a directory. Raises StoppedError."""
    return {identity(parse_row(row)[0]) for row in _rows(records_of(directory) / FAILURES)}


@contextmanager
def forgetting(directory: Path | None, handled: Set[str]) -> Iterator[None]:
    """Write outputs to a local directory. Afterwards, failures of earlier runs are no longer listed.

    `handled` are the identities of the archives and WACZ files that are read. Without a directory, nothing is done. Raises
    StoppedError.
    """
    if directory is None:
        yield
        return
    listed = records_of(directory) / FAILURES
    for path in (listed, records_of(directory) / OUTPUTS):
        _unshare(path)
    size = listed.stat().st_size if listed.exists() else 0
    yield
    _forget(directory, size, handled)


def _unshare(path: Path) -> None:
    """Write a file with a second name, such as one of `cp -al`, again: appended rows are for one name only."""
    with stopping(path), suppress(FileNotFoundError), os.fdopen(open_own(path, os.O_RDONLY), "rb") as old:
        if os.fstat(old.fileno()).st_nlink > 1:
            import shutil  # slow to import

            with write_atomic(path) as file:
                shutil.copyfileobj(old, file)


def _forget(directory: Path, size: int, handled: Set[str]) -> None:
    """Remove the rows of the archives `handled` from the first `size` bytes of the list: rows of earlier runs.

    `handled` are identities of archives that this run has indexed, or has listed again. Raises StoppedError.
    """
    path = records_of(directory) / FAILURES
    if not any(_is_one_of(handled, failed) for failed in failed_in(directory)):
        return
    offset = 0
    with write_atomic(path) as file:
        for row in _rows(path):
            if offset >= size or not _is_one_of(handled, identity(parse_row(row)[0])):
                file.write(row)
            offset += len(row)
    with stopping(path):
        if not path.stat().st_size:
            path.unlink()


def _is_one_of(handled: Set[str], archive: str) -> bool:
    """Whether the archive of this identity, or the WACZ that has it, is one of those."""
    return archive in handled or identity(Location(archive).stored_in) in handled


def _rows(path: Path) -> Iterator[bytes]:
    with stopping(path), suppress(FileNotFoundError), path.open("rb") as file:
        yield from file
