"""verify: a ZipNum cluster -> what is wrong with it.

    shards      read whole: blocks, order, what the parts and the index have to be
    beside      cluster.idx, cluster.summary, parts, cluster.loc, splits, cluster.json
    against     the lines of CDX files
    archives    the records of the lines

With cluster.json every byte is held against it; without, what lines, offsets and order show.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from cdxmill.checks.against import SoundShard, check_against, told_difference
from cdxmill.checks.archives import SoundLines, check_archives
from cdxmill.checks.beside import check_locations, check_manifest, check_splits
from cdxmill.checks.shards import Reports, ShardTask, block_ranges, check_seams, read_shards
from cdxmill.cluster.files import ClusterFiles, in_order, part_of
from cdxmill.cluster.locations import Rule
from cdxmill.cluster.manifest import Manifest, read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY
from cdxmill.running.failures import Failures
from cdxmill.running.quantities import count, human_bytes
from cdxmill.stages.zipnum.check_index import MOST_FAULTS, IndexReport, ShardLines, scan_index
from cdxmill.storage.choose import open_ranges, pieces, read_bytes


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """How a cluster is verified.

    `against` are CDX files, `convert`ed where that was done for the cluster; `archives` is where the archives are,
    `sample` the number of lines that are looked up there; `location` is what cluster.loc has to name.
    By a `shard_rule` shards are elsewhere than beside the index.
    """

    against: Sequence[str] | None = None
    convert: bool = False
    archives: str | None = None
    sample: int | None = None
    location: str | None = None
    shard_rule: Rule | None = None
    processes: int = 1
    quiet: bool = False


class Verified(NamedTuple):
    """What the cluster contains, and what was checked.

    `exact`: every byte was compared with cluster.json. `compared`: the lines were compared with the input files.
    """

    shards: int
    lines: int
    blocks: int
    size: int
    exact: bool
    compared: bool
    records: int | None
    faults: int

    def __str__(self) -> str:
        """Return one line."""
        how = (
            "every byte was checked"
            if self.exact
            else f"lines, offsets and order were checked (a check of every byte needs {MANIFEST})"
        )
        lines = f"{count(self.lines, 'line')} in {count(self.blocks, 'block')}"
        also = ", lines compared with the inputs" if self.compared else ""
        if self.records is not None:
            also += f", {count(self.records, 'record')} read"
        found = f"; {count(self.faults, 'error')} found" if self.faults else ""
        return f"{lines}, {count(self.shards, 'shard')}, {human_bytes(self.size)}: {how}{also}{found}"


def verify(cluster: str, options: VerifyOptions, failures: Failures) -> Verified:
    """Check the cluster at a path or URL. What is wrong is told by `failures`.

    Raises UsageError where there is none, InputError where nothing of it can be read.
    """
    files = ClusterFiles(cluster, options.shard_rule)
    manifest = _manifest(files, failures)
    index = _index(files, failures)
    names = _names(files, manifest, index, failures)
    tasks = [_task(files, name, manifest, index) for name in names]
    reports = read_shards(tasks, options.processes, failures, options.quiet)
    sound = check_seams(tasks, reports, failures)
    _tell(files, _beside(files, manifest, index, reports, options.location), failures)
    compared = options.against is not None and _compare_inputs(
        cluster, tasks, reports, sound, options, failures
    )
    records = None if options.archives is None else _read_records(tasks, reports, options, failures)
    known = [report for report in reports.values() if report is not None]
    lines, blocks = sum(report.lines for report in known), sum(report.blocks for report in known)
    size = sum(report.size for report in known)
    exact = manifest is not None
    return Verified(
        shards=len(reports),
        lines=lines,
        blocks=blocks,
        size=size,
        exact=exact,
        compared=compared,
        records=records,
        faults=failures.count,
    )


def _compare_inputs(
    cluster: str,
    tasks: Sequence[ShardTask],
    reports: Reports,
    sound: bool,
    options: VerifyOptions,
    failures: Failures,
) -> bool:
    """Whether the lines could be compared with those of the inputs; how they differ is told."""
    if not sound:
        failures.note(
            "note: lines were not compared with the inputs, for some shards are damaged or out of order"
        )
        return False
    places = ((task.place, reports[task.name]) for task in tasks)
    shards = [
        SoundShard(place, report.first) for place, report in places if report is not None and report.lines
    ]
    difference = check_against(
        shards, options.against or (), options.convert, options.processes, failures, options.quiet
    )
    for reason in told_difference(difference):
        failures.add(cluster, None, reason)
    return True


def _read_records(
    tasks: Sequence[ShardTask],
    reports: Reports,
    options: VerifyOptions,
    failures: Failures,
) -> int:
    """How many records were read, of the lines of sound shards."""
    shards = []
    for task in tasks:
        report = reports[task.name]
        if report is not None and report.lines and not report.faults:
            block_lines = report.block_lines or report.last_lines
            shards.append(SoundLines(task.place, report.lines, block_lines, partial(block_ranges, task)))
    return check_archives(
        shards, options.archives or "", options.sample, options.processes, failures, options.quiet
    )


def _manifest(files: ClusterFiles, failures: Failures) -> Manifest | None:
    try:
        return read_manifest(files)
    except InputError as error:
        failures.add(error.path, None, error.reason, error.hint)
        return None


def _index(files: ClusterFiles, failures: Failures) -> IndexReport:
    if files.index is None:
        return IndexReport({}, False, [])
    with open_ranges(files.place(files.index)) as read_at:
        found = scan_index(pieces(read_at))
    for fault in found.faults:
        failures.add(files.place(files.index), fault.offset, fault.reason)
    return found


def _names(
    files: ClusterFiles, manifest: Manifest | None, index: IndexReport, failures: Failures
) -> list[str]:
    """The shards in the order of their lines; parts and shards that are too many are told."""
    files_of_index = {posixpath.basename(files.shard_place(name)) for name in index.shards}
    if manifest is None:
        others = {*files.shards, *_located(files)} - index.shards.keys() - files_of_index
        names = in_order({*index.shards, *others}) if others else list(index.shards)
    else:
        names = manifest.names
        for shard in index.shards.keys() - set(names):
            failures.add(files.place(files.index or INDEX), None, f"{shard} is no shard of {MANIFEST}")
    for name in {*files.shards, *files.parts} - {*names, *map(part_of, names)} - files_of_index:
        failures.add(files.place(name), None, "is no file of this cluster: its index has nothing of it")
    return names


def _located(files: ClusterFiles) -> list[str]:
    if not files.has(LOCATIONS):
        return []
    lines = read_bytes(files.place(LOCATIONS)).split(b"\n")
    return [line.split(b"\t")[0].decode("utf-8", "surrogateescape") for line in lines if b"\t" in line]


def _task(files: ClusterFiles, name: str, manifest: Manifest | None, index: IndexReport) -> ShardTask:
    part = part_of(name)
    has_parts = manifest is not None or files.parts or files.has(part)
    return ShardTask(
        name,
        files.shard_place(name),
        files.place(part) if has_parts else None,
        files.place(files.index) if files.index is not None else None,
        index.shards.get(name, ShardLines(0, 0, 0)),
        index.numbered or manifest is not None,
        manifest.block_lines if manifest is not None else None,
        manifest is not None,
    )


def _beside(
    files: ClusterFiles,
    manifest: Manifest | None,
    index: IndexReport,
    reports: Reports,
    location: str | None,
) -> Iterator[tuple[str, str]]:
    """(file, what is wrong) of the files beside the shards but the parts."""
    wanted = (INDEX, SUMMARY, LOCATIONS) if manifest is not None else ()
    yield from ((name, "is absent") for name in wanted if not files.has(name))
    if files.has(INDEX) and files.has(SUMMARY):
        yield from _check_same(files, INDEX, SUMMARY)
    try:
        if files.has(LOCATIONS):
            yield from check_locations(files, reports, location, manifest is not None)
        if manifest is not None:
            yield from check_manifest(manifest, reports)
            yield from check_splits(files, manifest, reports)
    except InputError as error:
        yield error.path.rpartition("/")[2], error.reason


def _tell(files: ClusterFiles, wrong: Iterable[tuple[str, str]], failures: Failures) -> None:
    """Tell what is wrong with files: of each file as much as anybody reads."""
    told = Counter[str]()
    for name, reason in wrong:
        told[name] += 1
        if told[name] <= MOST_FAULTS:
            failures.add(files.place(name), None, reason)
    for name in (name for name in told if told[name] > MOST_FAULTS):
        failures.add(files.place(name), None, f"{told[name] - MOST_FAULTS} more things are wrong with it")


def _check_same(files: ClusterFiles, one: str, other: str) -> Iterator[tuple[str, str]]:
    with open_ranges(files.place(one)) as first, open_ranges(files.place(other)) as second:
        pairs = zip_longest(pieces(first), pieces(second), fillvalue=b"")
        start = 0
        for left, right in pairs:
            if left != right:
                yield other, f"is not the same as {one} from about byte {start} on"
                return
            start += len(left)
