"""recompress --estimate: what new archives would take, by kind of content, and how long it would take. Nothing is written.

Some archives are read whole, all of them if they are few. A part of their records, drawn at random, is packed as
`recompress` would do it. What each kind of content saves there is expected of all its records.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from cdxmill.capture import Damage, Record
from cdxmill.commands.per_archive.recompress_one import RecompressOptions, packer_of
from cdxmill.errors import InputError
from cdxmill.inputs.named import Input, check_archives
from cdxmill.messages import count, human_bytes
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import counted, processes_by_default, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.records.pack_contents import Packer, packed_size
from cdxmill.stages.records.parse_header import RecordError, parse_header
from cdxmill.stages.records.read_contents import Content, dictionary_in, read_contents, without_notes
from cdxmill.stages.records.record_parts import BLOCK_HEAD
from cdxmill.stages.window import ReadAt, chunk_of
from cdxmill.storage.location import Location, ask_all
from cdxmill.storage.reading import open_unchanged
from cdxmill.storage.scratch import Scratch, temporary_directory
from cdxmill.tasks.record_sampling import kind_of

READ, PACKED = 2 << 30, 64 << 20
"""Bytes of archives that are read, and of those the bytes of records that are packed."""
_SHOWN = 12
"""Kinds of content in the report. All others are one line."""
_OTHERS = "other kinds"


class KindSums(NamedTuple):
    """Records of one kind: how many, their bytes in the archives, decompressed, and of those that were packed.

    `without` and `packed` are the bytes of these without a dictionary and as they would be written; `seconds` of CPU time.
    """

    records: int = 0
    old: int = 0
    plain: int = 0
    tried: int = 0
    tried_plain: int = 0
    without: int = 0
    packed: int = 0
    seconds: float = 0.0

    def plus(self, other: KindSums) -> KindSums:
        """The sums of both."""
        return KindSums._make(map(sum, zip(self, other, strict=True)))


class EstimateTask(NamedTuple):
    """An archive to read. Each record is packed with the chance `share`."""

    archive: Input
    share: float
    seed: str
    scratch: Path
    options: RecompressOptions


class TriedArchive(NamedTuple):
    """What was found in an archive. `head` is the length of the dictionary's frame, `seconds` the CPU time to read it."""

    size: int
    kinds: dict[str, KindSums]
    head: int
    seconds: float
    failures: list[Failure]


def try_one(task: EstimateTask) -> TriedArchive:
    """Read an archive, and pack some of its records."""
    place, start = task.archive.location, time.process_time()
    kinds: dict[str, KindSums] = defaultdict(KindSums)
    failures: list[Failure] = []
    head = 0
    try:
        with open_unchanged(place) as read_now:
            read_at = counted(read_now)
            packer, plain = _packers(task.options, read_at)
            head = len(packer.head)
            chunk = chunk_of(place.is_remote)
            draw = Random(task.seed).random
            items = read_contents(read_at, Scratch(task.scratch), chunk, task.options.max_window)
            for item in without_notes(items, lambda note: None):
                if isinstance(item, Damage):
                    failures.append(Failure(task.archive.path, item.offset, item.reason, item.hint))
                    continue
                kind, found = _kind(item), KindSums(1, item.length, item.size)
                if draw() < task.share:
                    found = _tried(found, item, packer, plain)
                kinds[kind] = kinds[kind].plus(found)
            size = place.size()
    except InputError as error:
        return TriedArchive(0, {}, 0, 0, [Failure.from_error(error)])
    packing = sum(one.seconds for one in kinds.values())
    return TriedArchive(size, _scaled(kinds, size), head, time.process_time() - start - packing, failures)


def _packers(options: RecompressOptions, read_at: ReadAt) -> tuple[Packer, Packer]:
    """As `recompress` would use it, and the one without a dictionary."""
    plain = packer_of(options.to, options.level, b"")
    dictionary = options.dictionary
    if not dictionary and options.to == "zst" and options.keeps_dictionary:
        dictionary = dictionary_in(read_at)
    return (packer_of(options.to, options.level, dictionary) if dictionary else plain), plain


def _tried(found: KindSums, content: Content, packer: Packer, plain: Packer) -> KindSums:
    start = time.process_time()
    packed = packed_size(content, packer)
    seconds = time.process_time() - start
    without = packed if packer is plain else packed_size(content, plain)
    return found._replace(
        tried=content.length, tried_plain=content.size, without=without, packed=packed, seconds=seconds
    )


def _kind(content: Content) -> str:
    """The type of a record and the media type of its payload."""
    start = next(content.pieces(), b"")
    try:
        headers, end, is_arc = parse_header(start)
    except RecordError:  # blank lines, or a header longer than the first piece
        return _OTHERS
    block = start[end : end + BLOCK_HEAD]
    return kind_of(Record(content.offset, content.length, headers, block, content.size, None, is_arc))


def _scaled(kinds: Mapping[str, KindSums], size: int) -> dict[str, KindSums]:
    """The sums, with old bytes that add up to the size of the archive, also if it is compressed in one piece."""
    whole = sum(one.old for one in kinds.values())
    factor = size / whole if whole else 1
    return {
        kind: one._replace(old=round(one.old * factor), tried=round(one.tried * factor))
        for kind, one in kinds.items()
    }


class EstimatedKind(NamedTuple):
    """A line of the report."""

    kind: str
    records: int
    before: int
    after: int


class NewSizes(NamedTuple):
    """What `recompress` would do with all archives, of which `read` were read. `after` includes the dictionaries."""

    archives: int
    read: int
    records: int
    before: int
    after: int
    dictionaries: int
    seconds: float
    processes: int
    kinds: list[EstimatedKind]

    def __str__(self) -> str:
        """Return a table and the closing line."""
        rows = [("kind of content", "records", "before", "after", "")]
        rows += [
            (one.kind, f"{one.records:,}", human_bytes(one.before), human_bytes(one.after), _saved(one.before, one.after))
            for one in self.kinds
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join((row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)))).rstrip()
            for row in rows
        ]  # fmt: skip
        with_dictionary = f", {self.dictionaries} with a dictionary" if self.dictionaries else ""
        what = f"{count(self.archives, 'archive')}{with_dictionary}: {human_bytes(self.before)} before"
        took = f"about {self.seconds:,.0f} s of CPU time"
        if self.processes > 1:
            took += f", {self.seconds / self.processes:,.0f} s with {self.processes} processes"
        lines.append(
            f"{what}, about {human_bytes(self.after)} after ({_saved(self.before, self.after)}); {took}"
        )
        if self.read < self.archives:
            lines.append(f"estimated from {count(self.read, 'archive')} drawn at random")
        return "\n".join(lines)


def _saved(before: int, after: int) -> str:
    if not before:
        return "-"
    change = 100 * (after - before) / before
    return f"{abs(change):.1f} % {'larger' if change > 0 else 'smaller'}"


def estimate(archives: Sequence[Input], options: RecompressOptions, failures: Failures) -> NewSizes:
    """NewSizes what `recompress` would do with archives. Damage is reported. Raises UsageError if there are none."""
    check_archives(archives)
    for archive in archives:
        archive.location.require()
    sizes = ask_all(Location.size, [archive.location for archive in archives])
    chosen = _choose(sizes)
    read = sum(sizes[number] for number in chosen)
    share = min(1.0, PACKED / read) if read else 1.0
    results: list[TriedArchive] = []
    with (
        temporary_directory() as scratch,
        Progress("estimating", len(chosen), read, options.quiet) as progress,
    ):
        failures.show_on(progress)
        tasks = [
            EstimateTask(archives[number], share, str(number), Path(scratch) / str(number), options)
            for number in chosen
        ]
        for number, result in run_tasks(try_one, tasks, options.processes, progress.tick):
            failures.report_listed(tasks[number].archive.label, result.failures)
            results.append(result)
            progress.advance()
    return _combined(results, sizes, options.processes or processes_by_default())


def _choose(sizes: Sequence[int]) -> list[int]:
    """The numbers of the archives to read: all, or some at random."""
    numbers = list(range(len(sizes)))
    Random(0).shuffle(numbers)
    chosen, left = [], READ
    for number in numbers:
        if left > 0:
            chosen.append(number)
            left -= sizes[number]
    return sorted(chosen)


def _combined(results: Sequence[TriedArchive], sizes: Sequence[int], processes: int) -> NewSizes:
    kinds: dict[str, KindSums] = defaultdict(KindSums)
    for result in results:
        for kind, found in result.kinds.items():
            kinds[kind] = kinds[kind].plus(found)
    ratios = _ratios(kinds)
    read = sum(result.size for result in results)
    factor = sum(sizes) / read if read else 0
    head = dictionaries = 0
    after: dict[str, float] = defaultdict(float)
    for result in results:
        has_dictionary = _pays(result, ratios)
        head += has_dictionary * result.head
        dictionaries += has_dictionary
        for kind, found in result.kinds.items():
            after[kind] += found.old * ratios[kind][has_dictionary]
    return NewSizes(
        archives=len(sizes),
        read=len(results),
        records=round(factor * sum(one.records for one in kinds.values())),
        before=sum(sizes),
        after=round(factor * (sum(after.values()) + head)),
        dictionaries=round(factor * dictionaries),
        seconds=factor * (sum(result.seconds for result in results) + _packing(kinds)),
        processes=processes,
        kinds=list(_lines(kinds, after, factor)),
    )


def _ratios(kinds: Mapping[str, KindSums]) -> dict[str, tuple[float, float]]:
    """Of 1 byte of each kind, what is left without and with the dictionary. A kind that was not tried is as all others."""
    whole = KindSums()
    for one in kinds.values():
        whole = whole.plus(one)
    return {
        kind: (used.without / used.tried, used.packed / used.tried) if used.tried else (1.0, 1.0)
        for kind, used in ((kind, one if one.tried else whole) for kind, one in kinds.items())
    }


def _pays(result: TriedArchive, ratios: Mapping[str, tuple[float, float]]) -> bool:
    """Whether an archive would get its dictionary."""
    saved = sum(one.old * (ratios[kind][0] - ratios[kind][1]) for kind, one in result.kinds.items())
    return bool(result.head) and saved > result.head


def _packing(kinds: Mapping[str, KindSums]) -> float:
    """The CPU seconds to pack all records."""
    tried = sum(one.tried_plain for one in kinds.values())
    seconds = sum(one.seconds for one in kinds.values())
    return seconds * sum(one.plain for one in kinds.values()) / tried if tried else 0.0


def _lines(
    kinds: Mapping[str, KindSums], after: Mapping[str, float], factor: float
) -> Iterator[EstimatedKind]:
    """The kinds with the most bytes, and all others together."""
    by_size = sorted(kinds, key=lambda kind: (kind == _OTHERS, -kinds[kind].old))
    shown = by_size[:_SHOWN]
    for names, label in (
        *(([kind], kind) for kind in shown),
        ([one for one in by_size if one not in shown], _OTHERS),
    ):
        if names:
            records, before, new = (
                round(factor * sum(values))
                for values in zip(*((kinds[one].records, kinds[one].old, after[one]) for one in names), strict=True)
            )  # fmt: skip
            yield EstimatedKind(label, records, before, new)
