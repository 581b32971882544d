"""One archive -> the same records in a new archive, with an index, a table of offsets and the proof of it beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import IO, Any, NamedTuple

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive.ledger import Ledger
from cdxmill.commands.per_archive.task import ArchiveTask, OneOutput, OutputOptions
from cdxmill.errors import InputError
from cdxmill.formats.archives.zstd_dictionary import dictionary_id
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.formats.proof import Proof, Sum, description_fields, format_proof
from cdxmill.inputs.named import Input
from cdxmill.outputs.record import Summed
from cdxmill.outputs.settings import ArchiveSettings, LineSettings
from cdxmill.outputs.side_files import renewed, retire
from cdxmill.outputs.time import output_time
from cdxmill.running.failures import Failure
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import CaptureLines, Findings, read_packed
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.lines.line_lists import write_gzip_lines
from cdxmill.stages.lines.merge_lines import sorted_lists
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.records.carry_damage import with_damage
from cdxmill.stages.records.describe import description
from cdxmill.stages.records.pack_contents import (
    GzipPacker,
    Packed,
    Packer,
    ZstPacker,
    choose_packer,
    group_contents,
    write_contents,
)
from cdxmill.stages.records.read_contents import Content, dictionary_in, read_contents, without_notes
from cdxmill.stages.window import ReadAt, SummedReads
from cdxmill.storage.location import Location
from cdxmill.storage.patience import stops
from cdxmill.storage.scratch import Scratch
from cdxmill.version import __version__

CAPTURES = CaptureOptions()
INDEX = LineSettings(CAPTURES, "cdxj")
"""The index has the lines that `index` writes without options."""
_ROWS = 10_000
"""Rows of a table of offsets that are compressed together."""


@dataclass(frozen=True, kw_only=True)
class RecompressOptions(OutputOptions):
    """How archives are written again. `dictionary` is the content of the dictionary's file, b"" for none.

    With `keeps_dictionary`, an archive without another dictionary keeps the one that it has.
    """

    to: str = "zst"
    level: int = 6
    dictionary: bytes = field(default=b"", repr=False)
    keeps_dictionary: bool = True
    group: bool = False
    max_window: int | None = None
    index: bool = False
    offsets: bool = False
    any_digest: bool = False
    keep_damaged: bool = False
    describe: bool = False

    def settings(self) -> ArchiveSettings:
        """The options that decide how an archive looks."""
        head = packer_of(self.to, self.level, self.dictionary).head
        flags = self.group, self.keeps_dictionary, self.keep_damaged, self.describe
        others = self.to, self.level, *flags
        return ArchiveSettings(head, others)


@dataclass(frozen=True)
class RecompressTask(ArchiveTask):
    """An archive to write again, and the places of its proof, its index and its table of offsets, None for none.

    Records that are compressed together have neither index nor table, and those of an earlier run are removed. Index lines have the
    name `filename`.
    """

    options: RecompressOptions
    filename: str
    proof: Location
    index: Location | None
    table: Location | None

    def sides(self) -> Iterator[Location]:
        """The proof, and the index and the table, if they are wanted."""
        return filter(None, (self.proof, self.index, self.table))


class RecompressedArchive(NamedTuple):
    """What came of an archive: bytes before and after (0 if nothing was written), records, captures in its index.

    `notes` are about records of the new archive, `old_notes` about what the old one has besides records. `wrong_digests` of `digests` are not those of their records. `lacks_dictionary`
    says that a dictionary is not a part of it because it saves less than it takes, `other_name` that its first record
    has another file name.
    """

    before: int
    after: int
    records: int
    captures: int
    failures: list[Failure]
    notes: list[Note]
    old_notes: list[Note]
    digests: int = 0
    wrong_digests: int = 0
    lacks_dictionary: bool = False
    other_name: bool = False


class _NothingToWriteError(Exception):
    """The archive has no record that can be written."""


@lru_cache(maxsize=4)
def packer_of(to: str, level: int, dictionary: bytes) -> Packer:
    """The packer of a process: its tables are made once."""
    return GzipPacker(level) if to == "gz" else ZstPacker(level, dictionary)


def recompress_one(task: RecompressTask) -> RecompressedArchive:
    """Write one archive again. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, or has no record, nothing is written, and an output of an earlier run stays.
    """
    output, error = OneOutput(task), None
    copy = _Copy(task)
    try:
        with _table(task) as add, output.writing(copy.failures, copy.write_proof) as file:
            copy.run(file, add)
        copy.write_index()
        for side in task.sides():
            renewed(side)
    except _NothingToWriteError:
        pass
    except InputError as failure:
        error = failure
    failures = copy.failures(error)
    output.finish(failures)
    if error is not None:
        return RecompressedArchive(output.size, 0, 0, 0, failures, [], [])
    return copy.result(output.size, output.bytes, failures)


@contextmanager
def _table(task: RecompressTask) -> Iterator[Callable[[Packed], object]]:
    """A function that adds a record to the table of offsets, if it is wanted. The table gets its name at the end."""
    if task.table is None or task.options.group:
        yield lambda packed: None
        return
    row, rows, compressor = row_format(task.archive.filename, task.filename), [HEADER], Compressor()
    with task.table.write_atomic(sync_name=False) as file:

        def add(packed: Packed) -> None:
            old = packed.content
            if old.line_length:  # else no index of the old archive has a line of it
                rows.append(row % (old.offset, old.line_length, packed.offset, packed.length))
            if len(rows) == _ROWS:
                flush()

        def flush() -> None:
            file.write(compressor.compress(b"".join(rows)))
            rows.clear()

        yield add
        flush()


class _Copy:
    """An archive that is written again: the steps, and what was found."""

    def __init__(self, task: RecompressTask) -> None:
        self._task, self._scratch = task, Scratch(task.scratch)
        self._findings, self.indexed, self.records = Findings(), Findings(), 0
        self._sorter = LineSorter(self._scratch.create, "lines")
        self._ledger = Ledger(self._wrong_digest)
        self._old, self._damaged = Sum(0, ""), 0
        self._dictionary = b""
        self._lacks_dictionary = False

    def run(self, file: IO[bytes], add: Callable[[Packed], object]) -> None:
        """Write the archive to `file`. Raises InputError, _NothingToWriteError. `add` gets each record."""
        task = self._task
        packed = self._packed(file, add)
        if task.index is not None and not task.options.group:
            filename = os.fsencode(task.filename)
            captures = make_captures(read_packed(packed, filename, CAPTURES), filename, CAPTURES)
            lines = CaptureLines(captures, "cdxj")
            self.indexed = lines.findings
            for some in lines:
                self._sorter.add(some)
        else:
            for _ in packed:
                pass
        if not self.records:
            raise _NothingToWriteError
        for side in task.sides():
            retire(side)  # it is of the archive that is replaced now

    def _packed(self, file: IO[bytes], add: Callable[[Packed], object]) -> Iterator[Packed]:
        task, options = self._task, self._task.options
        with task.open_archive() as read_now:
            read_at = SummedReads(read_now)
            found = read_contents(read_at, self._scratch, task.chunk, options.max_window)
            contents = without_notes(found, self._findings.add)
            if options.keep_damaged:
                contents = with_damage(contents, read_now, task.archive.filename, task.archive.location.size)
            contents = self._ledger.watch(contents)
            if options.group:
                contents = group_contents(contents)
            packer, contents = self._packer(read_at, contents)
            if options.describe:
                contents = chain(contents, self._description(read_at))
            for item in write_contents(contents, packer, file.write):
                if isinstance(item, Damage):
                    self._damaged += 1
                    self._findings.add(_carried(item) if options.keep_damaged else item)
                else:
                    self.records += item.content.records
                    add(item)
                    yield item
            self._old = Sum(sha256=read_at.sha256(), size=read_at.size)

    def _packer(
        self, read_at: ReadAt, contents: Iterator[Content | Damage]
    ) -> tuple[Packer, Iterator[Content | Damage]]:
        """The packer of the archive: with a dictionary if one is known, and saves more than it takes."""
        options = self._task.options
        plain = packer_of(options.to, options.level, b"")
        dictionary = options.dictionary
        if not dictionary and options.to == "zst" and options.keeps_dictionary:
            dictionary = dictionary_in(read_at)
        if not dictionary:
            return plain, contents
        size = self._task.archive.location.size()
        packer, contents = choose_packer(
            contents, packer_of(options.to, options.level, dictionary), plain, size
        )
        self._lacks_dictionary = packer is plain
        self._dictionary = b"" if packer is plain else dictionary
        return packer, contents

    def _description(self, read_at: SummedReads) -> Iterator[Content]:
        """The last record of a WARC file, if it has others. All these were read."""
        kinds = self._ledger.kinds
        if kinds and "arc" not in kinds:
            proof = self._proof(Sum(sha256=read_at.sha256(), size=read_at.size), Sum(0, ""))
            yield description(proof.old_name, output_time(), description_fields(proof))

    def _wrong_digest(self, found: Damage) -> None:
        if not self._task.options.any_digest:
            self._findings.add(found)

    def write_index(self) -> None:
        """Write the index of the new archive, if it is wanted. It is newer than the archive."""
        task = self._task
        if task.index is None or task.options.group:
            return
        new = Input(task.output, task.filename, task.output.text)
        index = ArchiveTask(new, task.index, task.directory, task.scratch, INDEX)
        with stops(task.output.text, "read"), OneOutput(index).writing(list) as file:
            write_gzip_lines(sorted_lists(self._sorter, self._scratch.create, self._scratch.reader), file)

    def write_proof(self, file: Summed) -> None:
        """Write the proof of the new archive, which gets its name after that. The SHA-256 in it ties them."""
        proof = self._proof(self._old, Sum(file.size, file.sha256()))
        with self._task.proof.write_atomic(sync_name=False) as beside:
            beside.write(format_proof(proof))

    def _proof(self, old: Sum, new: Sum) -> Proof:
        task, ledger, options = self._task, self._ledger, self._task.options
        return Proof(
            tool=f"cdxmill {__version__}",
            old_name=task.archive.filename,
            old_file=old,
            new_name=task.filename,
            new_file=new,
            content=ledger.content(),
            compression={
                "format": options.to,
                "level": options.level,
                "library": packer_of(options.to, options.level, b"").library,
                "group": options.group,
            },
            dictionary=_dictionary_fields(self._dictionary),
            records=dict(sorted(ledger.kinds.items())),
            skipped=0 if options.keep_damaged else self._damaged,
            carried=self._damaged if options.keep_damaged else 0,
            digests=ledger.digests,
            wrong_digests=ledger.wrong_digests,
            warc_filename=ledger.file_name if self._has_other_name() else None,
        )

    def _has_other_name(self) -> bool:
        name = self._ledger.file_name
        return name is not None and name != self._task.output.name

    def failures(self, error: InputError | None = None) -> list[Failure]:
        """What was found so far. `error` is why the archive cannot be read."""
        found = self._task.failures_of(self._findings.damage, error)
        if error is None:
            path = self._task.output.text
            found += [Failure(path, one.offset, one.reason, one.hint) for one in self.indexed.damage]
        return found

    def result(self, before: int, after: int, failures: list[Failure]) -> RecompressedArchive:
        """What came of the archive."""
        ledger, found = self._ledger, self.indexed
        return RecompressedArchive(
            before=before,
            after=after,
            records=self.records,
            captures=found.captures,
            failures=failures,
            notes=found.notes,
            old_notes=self._findings.notes,
            digests=ledger.digests,
            wrong_digests=ledger.wrong_digests,
            lacks_dictionary=self._lacks_dictionary,
            other_name=self._has_other_name(),
        )


def _carried(damage: Damage) -> Damage:
    return damage._replace(reason=f"{damage.reason}; carried over as it is")


def _dictionary_fields(dictionary: bytes) -> dict[str, Any] | None:
    if not dictionary:
        return None
    import hashlib

    return {"id": dictionary_id(dictionary), "sha256": hashlib.sha256(dictionary).hexdigest()}
