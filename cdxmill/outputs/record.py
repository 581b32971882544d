"""`.outputs.tsv` in a local folder of indexes: which archive each index was made from, and with which settings.

    <output> TAB <archive> TAB <settings> TAB <size of the archive> TAB <fingerprint of the output> LF

Rows are only appended: by several processes at the same time, each before its output gets its name. The last row whose
fingerprint matches the output counts. So a row of a run that was killed before the output got its name does no harm.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.formats.own_records import OUTPUTS
from cdxmill.formats.tsv_row import parse_row
from cdxmill.storage.local.files import append_rows, make_folder, stopping

_TAIL = 8
"""Bytes at the end of a gzip file: the CRC32 and the length of its last member."""


class Made(NamedTuple):
    """A row: `output` is the path below the folder, `archive` an identity (see `output_names`), `settings` a hash."""

    output: str
    archive: str
    settings: str
    size: int
    fingerprint: str

    def row(self) -> list[str]:
        """The fields as text."""
        return [self.output, self.archive, self.settings, str(self.size), self.fingerprint]


class Fingerprinted:
    """A file to write to that knows the fingerprint of what was written: the size and the last bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._size, self._tail = file, 0, b""

    def write(self, data: bytes) -> int:
        """Write `data`."""
        self._size += len(data)
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        return self._file.write(data)

    @property
    def size(self) -> int:
        """Bytes that were written."""
        return self._size

    def fingerprint(self) -> str:
        """The fingerprint of all that was written."""
        return _fingerprint(self._size, self._tail)


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


def append_made(folder: Path, made: Made) -> None:
    """Append a row. Raises StoppedError."""
    append_rows(folder / OUTPUTS, [made.row()])


class OutputRecord:
    """The rows of a folder. Raises StoppedError if they cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, list[Made]] = defaultdict(list)
        data = b""
        with stopping(folder / OUTPUTS), suppress(FileNotFoundError):
            data = (folder / OUTPUTS).read_bytes()
        for line in data.split(b"\n"):
            fields = parse_row(line)
            if len(fields) == len(Made._fields) and fields[3].isdecimal():  # else half a row of a killed run
                output, archive, settings, size, found = fields
                self._rows[output].append(Made(output, archive, settings, int(size), found))

    def made_from(self, output: Path) -> Made | None:
        """The row of an output; None if it is absent or empty, or if another program wrote it."""
        rows = self._rows.get(output.relative_to(self._folder).as_posix())
        found = fingerprint(output) if rows else None
        return next((made for made in reversed(rows or ()) if made.fingerprint == found), None)


def link_outputs(old: Path, new: Path, outputs: list[str]) -> None:
    """Give outputs of the folder `old` a second name in the folder `new`, and copy their rows. Raises StoppedError.

    Where the file system has no hard links, nothing is done.
    """
    record = OutputRecord(old)
    make_folder(new)
    rows: list[Made] = []
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
    append_rows(new / OUTPUTS, [made.row() for made in rows])


def end_last_row(path: Path) -> None:
    """Add the LF that the last row of a killed run may lack, so that the next row starts on its own line."""
    with stopping(path):
        if not path.exists():
            return
        with path.open("rb+") as file:
            if file.seek(0, os.SEEK_END) and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                file.write(b"\n")
