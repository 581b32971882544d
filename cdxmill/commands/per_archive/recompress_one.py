"""Write one archive again: the task that `recompress` runs in its processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive.index_one import sorted_lists
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.failure_list import failures_beside, list_beside, list_in
from cdxmill.outputs.names import identity
from cdxmill.outputs.record import Fingerprinted, Made, append_made
from cdxmill.outputs.settings import ArchiveSettings, LineSettings
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.findings import Findings
from cdxmill.stages.captures.index_archive import CaptureLines
from cdxmill.stages.captures.index_packed import read_packed
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.write_lines import write_gzip_lines
from cdxmill.stages.records.group_contents import group_contents
from cdxmill.stages.records.pack_contents import GzipPacker, Packed, Packer, ZstPacker, write_contents
from cdxmill.stages.records.read_contents import ScratchFiles, read_contents
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.choose import file_size, is_remote, remove, write_atomic
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.unchanged import open_unchanged


@dataclass(frozen=True, kw_only=True)
class RecompressOptions:
    """How archives are written again. `dictionary` is the content of the dictionary's file, b"" for none."""

    to: str = "zst"
    level: int = 6
    dictionary: bytes = field(default=b"", repr=False)
    group: bool = False
    max_window: int | None = None
    index: bool = False
    offsets: bool = False
    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False

    def settings(self) -> ArchiveSettings:
        """The options that decide how an archive looks."""
        return ArchiveSettings(packer_of(self).head, (self.to, self.level, self.group))


class RecompressTask(NamedTuple):
    """An archive to write again to the path or URL `output`, and the places of its index and its table of offsets, "" for none.

    Index lines have the name `filename`.
    Failures are listed in the local folder `folder`, or, without one, beside the output.
    """

    archive: Input
    output: str
    index_path: str
    table: str
    filename: str
    folder: Path | None
    scratch: Path
    options: RecompressOptions


class RecompressResult(NamedTuple):
    """What came of an archive: bytes before and after (0 if nothing was written), records, captures in its index.

    `notes` are about records of the new archive.
    """

    before: int
    after: int
    records: int
    captures: int
    failures: list[Failure]
    notes: list[Note]


_CAPTURES = CaptureOptions()
INDEX = LineSettings(_CAPTURES, "cdxj")
"""The index has the lines that `index` writes without options."""


_ROWS = 10_000
"""Rows of a table of offsets that are compressed together."""


class _NothingToWriteError(Exception):
    """The archive has no record that can be written."""


@lru_cache(maxsize=1)
def packer_of(options: RecompressOptions) -> Packer:
    """The packer of a process: its tables are made once."""
    return GzipPacker(options.level) if options.to == "gz" else ZstPacker(options.level, options.dictionary)


def recompress_one(task: RecompressTask) -> RecompressResult:
    """Write one archive again. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, or has no record, nothing is written, and an output of an earlier run stays.
    """
    copy, error = _Copy(task), None
    try:
        with _table(task) as add, write_atomic(task.output, sync_name=False) as raw:
            copy.run(Fingerprinted(raw), add)
        copy.write_index()
    except _NothingToWriteError:
        pass
    except InputError as failure:
        error = failure
    result = copy.result(error)
    if not result.records:
        _list_failures(task, result.failures)
    elif task.folder is not None or not result.failures:
        remove(failures_beside(task.output))
    Scratch(task.scratch).remove()
    return result


@contextmanager
def _table(task: RecompressTask) -> Iterator[Callable[[Packed], object]]:
    """A function that adds a record to the table of offsets, if it is wanted. The table gets its name at the end."""
    if not task.table:
        yield lambda packed: None
        return
    with write_atomic(task.table, sync_name=False) as file:
        rows = _Rows(row_format(task.archive.filename, task.filename), file)
        yield rows.add
        rows.flush()


class _Rows:
    """Writes rows of a table of offsets to a file, compressed."""

    def __init__(self, row: bytes, file: IO[bytes]) -> None:
        self._row, self._file, self._compressor = row, file, Compressor()
        self._rows = [HEADER]

    def add(self, packed: Packed) -> None:
        """Add a record, if an index of the old archive can have a line of it."""
        old = packed.content
        if old.line_length:
            self._rows.append(self._row % (old.offset, old.line_length, packed.offset, packed.length))
        if len(self._rows) == _ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are held."""
        self._file.write(self._compressor.compress(b"".join(self._rows)))
        self._rows = []


class _Copy:
    """An archive that is written again: the steps, and what was found."""

    def __init__(self, task: RecompressTask) -> None:
        self._task, self._scratch = task, Scratch(task.scratch)
        path = task.archive.path
        self._size = 0 if is_remote(path) else file_size(path)
        self._findings, self._records, self._written = Findings(), 0, 0
        self._sorter = LineSorter(self._scratch.create, "lines")
        self._indexed = Findings()

    def run(self, file: Fingerprinted, add: Callable[[Packed], object]) -> None:
        """Write the archive, then list its failures and record it. Raises InputError, _NothingToWriteError.

        `add` gets each record.
        """
        task = self._task
        packed = self._packed(cast("IO[bytes]", file), add)
        if task.index_path:
            filename = os.fsencode(task.filename)
            captures = make_captures(read_packed(packed, filename, _CAPTURES), filename, _CAPTURES)
            lines = CaptureLines(captures, "cdxj")
            self._indexed = lines.findings
            for some in lines:
                self._sorter.add(some)
        else:
            for _ in packed:
                pass
        if not self._records:
            raise _NothingToWriteError
        self._written = file.size
        _list_failures(task, self.result(None).failures)
        if task.table:
            remove(task.table)  # it is of the archive that is replaced now
        if task.folder is not None:
            settings = task.options.settings().digest(task.archive.filename)
            _append_made(task.folder, task.output, task.archive.path, settings, self._size, file)

    def _packed(self, file: IO[bytes], add: Callable[[Packed], object]) -> Iterator[Packed]:
        path, options = self._task.archive.path, self._task.options
        scratch = ScratchFiles(self._scratch.create, self._scratch.reader)
        with open_unchanged(path) as read_at:
            chunk = CHUNK if is_remote(path) else LOCAL_CHUNK
            contents = read_contents(counted(read_at), scratch, chunk, options.max_window)
            if options.group:
                contents = group_contents(contents)
            for item in write_contents(contents, packer_of(options), file.write):
                if isinstance(item, Damage):
                    self._findings.add(item)
                else:
                    self._records += item.content.records
                    add(item)
                    yield item

    def write_index(self) -> None:
        """Write the index of the new archive, if it is wanted. It is newer than the archive."""
        task = self._task
        if not task.index_path:
            return
        with write_atomic(task.index_path, sync_name=False) as raw:
            file = Fingerprinted(raw)
            write_gzip_lines(sorted_lists(self._sorter, self._scratch), cast("IO[bytes]", file), Compressor())
            if task.folder is not None:
                settings = INDEX.digest(task.filename)
                _append_made(task.folder, task.index_path, task.output, settings, self._written, file)

    def result(self, error: InputError | None) -> RecompressResult:
        """What was found so far. `error` is why the archive cannot be read."""
        path = self._task.archive.path
        failures = failures_of(path, self._findings.damage, error)
        if error is not None:
            return RecompressResult(self._size, 0, 0, 0, failures, [])
        failures += failures_of(self._task.output, self._indexed.damage)
        found = self._indexed
        return RecompressResult(
            self._size, self._written, self._records, found.captures, failures, found.notes
        )


def _append_made(
    folder: Path, output: str, archive: str, settings: str, size: int, file: Fingerprinted
) -> None:
    name = Path(output).relative_to(folder).as_posix()
    append_made(folder, Made(name, identity(archive), settings, size, file.fingerprint()))


def failures_of(path: str, damage: Sequence[Damage], error: InputError | None = None) -> list[Failure]:
    """The failures of an archive under the name `path`: by offset, and last that of the file as a whole."""
    found = [Failure(path, one.offset, one.reason, one.hint) for one in damage]
    if error is not None:
        found.append(Failure(path, None, error.reason, error.hint))
    return found


def _list_failures(task: RecompressTask, failed: Sequence[Failure]) -> None:
    if task.folder is not None:
        list_in(task.folder, failed)
    elif failed:
        list_beside(task.output, failed)
