"""add: archives, CDX files or other clusters -> their lines in a cluster that exists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import filterfalse, islice
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.archive_index import has_archive_index
from cdxmill.cluster.change import Change, changed_record, delete_kept, open_change
from cdxmill.cluster.exclude import read_excluded
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.clusters.sorting import sort_files
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add_clusters import lines_of_cluster, why_not_added
from cdxmill.commands.collections.add_lines import NewLines, add_lines
from cdxmill.commands.collections.change_shards import Done, Others, make_changeable, work_directory
from cdxmill.commands.collections.compact import compact
from cdxmill.commands.collections.identity import Known, KnownArchive, find_known, joined, lines_in
from cdxmill.commands.collections.other_clusters import OtherCluster, check_shards
from cdxmill.commands.collections.summary import LOG, MOST_OVERLAYS, ChangeSummary, logged, summary_of
from cdxmill.commands.per_archive.index import index_options, index_to_directory
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    CDX_DIRECTORY,
    MANIFEST,
    BlockRef,
    format_path_index,
    parse_path_index,
)
from cdxmill.formats.own_records import FAILURES, OUTPUTS
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import CdxSource, Inventory, check_formats, find_cdx_files, take_inventory
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding, Compacting
from cdxmill.options.option import path_list
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import identity, unique_names
from cdxmill.outputs.record import OutputRecord, recorded, state_of
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.running.resume import WorkDirectory
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.lines.cdx_text import fields_of
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.location import Location, ask_all, locate
from cdxmill.storage.own import own_directory
from cdxmill.tasks.sorting import SortResult


class _Inputs(NamedTuple):
    """What is added: CDX files, some of them indexes of archives, and clusters. `places` are those of all archives.

    `listed` are the places of archives that the cluster has.
    """

    paths: list[str]
    clusters: list[OtherCluster]
    places: dict[str, list[str]]
    listed: Mapping[str, list[str]]


def add(
    asked: Adding,
    failures: Failures,
    given: Sequence[Input] | None = None,
    engine: RunTasks | None = None,
) -> ChangeSummary:
    """Add the lines of archives, or with `cdx` of CDX files, to a cluster. What it has already is not added again.

    `given` are the archives if they were searched before. An `engine` of other machines adds clusters. Raises UsageError for
    invalid arguments, if there are no inputs, or if lines have another format than those of the
    cluster; InputError if the cluster is corrupt where it would change, StoppedError if it cannot be written.
    """
    paths, clusters = _named(path_list(asked.inputs), failures) if asked.cdx else ([], [])
    if engine is not None:  # its machines have other current directories
        clusters = [one._replace(place=Location(one.place.absolute())) for one in clusters]
    archives = [] if asked.cdx else given or find_archives(asked, failures)
    make_changeable(asked, failures)
    with open_change(os.fspath(asked.cluster), failures.note) as change, work_directory(change) as scratch:
        delete_kept(change.place, asked.keep_old)
        before = len(failures.items)
        names = unique_names(archives)
        _note_changed(change, names, failures)
        paths += _index(change, names, asked, failures)
        indexed = {archive: name for archive, name in names.items() if _path(change, name) in paths}
        places = {archive.filename: [identity(archive.location)] for archive in indexed}
        places |= {name: found for one in clusters for name, found in _listed(one.place).items()}
        inputs = _Inputs(paths, clusters, places, _listed(change.place))
        new = _new_lines(change, inputs, scratch, asked, failures, engine)
        refused = [name for archive, name in indexed.items() if archive.filename not in places]
        ask_all(Location.remove, [change.place / CDX_DIRECTORY / name for name in refused])
        done, overlay = add_lines(change, new, asked, scratch, engine)
        excluded = new.excluded + done.counts.excluded
        _commit(change, inputs, done, list(names.values()), excluded, failures.items[before:])
    return _compacted(summary_of(change, done, excluded)._replace(overlay=overlay), asked, failures)


def _commit(
    change: Change,
    inputs: _Inputs,
    done: Done,
    names: Sequence[str],
    excluded: int,
    reported: Sequence[Failure],
) -> None:
    """Switch to the new lines, and list their archives, if there are any. `names` are those of the indexes of archives."""
    files = _files(inputs.listed, inputs.places)
    if done.shards == list(change.manifest.files) and not files:
        return
    own = [f"{CDX_DIRECTORY}/{name}" for name in (*names, OUTPUTS, FAILURES)] if names else []
    record = changed_record(change.place, change.number, reported, [*own, *files])
    given = len(inputs.paths) + len(inputs.clusters)
    log = logged(change, "add", done, {"inputs": given, "excluded": excluded})
    change.commit(done.shards, record, {**files, LOG: log})


def _compacted(summary: ChangeSummary, asked: Adding, failures: Failures) -> ChangeSummary:
    """Compact a cluster that has got too many overlays, unless the user has asked for one."""
    overlays = len(summary.manifest.overlays)
    if not summary.overlay or asked.mode is not None or overlays <= MOST_OVERLAYS:
        return summary
    failures.note(
        f"{asked.cluster}: note: has {overlays} overlays, more than {MOST_OVERLAYS}, so it is compacted"
    )
    following = Compacting(asked.cluster, keep_old=asked.keep_old, processes=asked.processes)
    following.quiet = asked.quiet
    return summary._replace(manifest=compact(following, failures).manifest)


def _named(named: list[str], failures: Failures) -> tuple[list[str], list[OtherCluster]]:
    """The CDX files and the clusters that are named."""
    rest, clusters = [], []
    for name in named:
        place = locate(name)
        if place.properties.can_write and (place / MANIFEST).exists():
            clusters.append(OtherCluster(place, read_manifest(place / MANIFEST)))
        else:
            rest.append(name)
    return find_cdx_files(rest, failures) if rest or not clusters else [], clusters


def _index(change: Change, names: Mapping[Input, str], asked: Adding, failures: Failures) -> list[str]:
    """Index the archives beside those of the build. Returns the paths of their CDX files."""
    if not names:
        return []
    directory = change.place / CDX_DIRECTORY
    if not directory.is_remote:
        own_directory(Path(directory.local))
    index_to_directory(names, directory, index_options(asked, Rule.RENEW), failures)
    there = directory.entries()
    return [_path(change, name) for name in names.values() if name in there]


def _note_changed(change: Change, names: Mapping[Input, str], failures: Failures) -> None:
    """Report archives that were added before and have another content now: lines of the old content lead nowhere."""
    directory = (change.place / CDX_DIRECTORY).directory
    rows = OutputRecord(directory).last_rows() if names else []
    known = {row.output: (row.archive, row.state) for row in rows}
    for archive, name in names.items():
        if name in known and known[name] != (recorded(archive.location), _state(archive)):
            failures.note(
                f"{archive.label}: note: it has changed, and the cluster keeps the lines of its earlier content; to remove"
                " them, run cdxmill remove --archives, and then add it again"
            )


def _state(archive: Input) -> str:
    with suppress(InputError):
        return state_of(archive.location.status())
    return ""


def _path(change: Change, name: str) -> str:
    return str(change.place / CDX_DIRECTORY / name)


def _new_lines(
    change: Change,
    inputs: _Inputs,
    scratch: Path,
    asked: Adding,
    failures: Failures,
    engine: RunTasks | None,
) -> NewLines:
    """The lines that are to be added: clusters whose blocks can be copied, or sorted runs of all files."""
    excluded = read_excluded(change.place)
    why = why_not_added(change, inputs.paths, inputs.clusters, asked, engine)
    if why and engine is not None:
        raise UsageError(f"{why}, so only cdxmill add without --engine can add it")
    if not why:
        run = engine or run_tasks
        checked = check_shards(inputs.clusters, failures, asked.processes, asked.quiet, run)
        new = _new_clusters(change, inputs._replace(clusters=checked), excluded, asked, failures)
        return NewLines(others=Others(new, excluded))
    shards = [str(one.place / shard.name) for one in inputs.clusters for shard in one.manifest.files]
    found = take_inventory([*inputs.paths, *shards], formats=True).sources
    groups = list(_groups(found, inputs))
    sources = [one for group, _ in groups for one in group]
    with open_searched(change.place) as cluster:
        check_formats([*_formats(change.place, cluster), *sources])
        known = {one.path: find_known(lines_in(one, excluded), cluster) for one in sources}
    chosen = list[CdxSource]()
    for group, names in groups:
        if _is_new(joined(known[one.path] for one in group), inputs, asked.again, failures):
            chosen += group
        else:
            _unlist(names, inputs)
    if not chosen:
        return NewLines()
    done = _sorted(change, chosen, excluded, scratch, asked, failures)
    are_new = not excluded and all(map(_is_unknown, known.values()))
    return NewLines(done.runs, are_new, done.excluded)


def _new_clusters(
    change: Change,
    inputs: _Inputs,
    excluded: Sequence[LineRange],
    asked: Adding,
    failures: Failures,
) -> list[OtherCluster]:
    """The clusters that are to be added. The archives of the others are not listed."""
    new = []
    with open_searched(change.place) as cluster:
        own = _formats(change.place, cluster)
        for one in inputs.clusters:
            with open_searched(one.place) as other:
                check_formats([*own, *_formats(one.place, other, one.skipped)])
                known = find_known(lines_of_cluster(one, other, excluded), cluster)
            if _is_new(known, inputs, asked.again, failures):
                new.append(one)
            else:
                _unlist(_listed(one.place), inputs)
    return new


def _groups(sources: Sequence[CdxSource], inputs: _Inputs) -> Iterator[tuple[list[CdxSource], Iterable[str]]]:
    """The files, each alone, and the shards of each cluster with its archives: all of a cluster is added, or nothing."""
    rest = iter(sources)
    for one in islice(rest, len(inputs.paths)):
        yield [] if _is_empty_list(one) else [one], ()
    for cluster in inputs.clusters:
        yield list(islice(rest, len(cluster.manifest.files))), _listed(cluster.place)


def _unlist(names: Iterable[str], inputs: _Inputs) -> None:
    """Forget the places of archives that are not added."""
    for name in names:
        inputs.places.pop(name, None)


def _sorted(
    change: Change,
    chosen: list[CdxSource],
    excluded: Sequence[LineRange],
    scratch: Path,
    asked: Adding,
    failures: Failures,
) -> SortResult:
    points = tuple(change.points)
    options = ZipnumOptions(
        points=points,
        shards=len(points) + 1,
        processes=asked.processes,
        quiet=asked.quiet,
        excluded=tuple(excluded),
    )
    return sort_files(Inventory(chosen), WorkDirectory(scratch, "add"), options, failures)


def _is_unknown(known: Sequence[KnownArchive]) -> bool:
    """Whether the cluster has none of the archives of a file, as far as some of their lines tell."""
    return bool(known) and all(one.known in (Known.NOTHING, Known.OTHER_NAME) for one in known)


def _is_empty_list(source: CdxSource) -> bool:
    """Whether a CDX file is a text without lines: there was nothing to list. A gzip file of no bytes is truncated."""
    return source.is_empty and not source.path.endswith(".gz")


def _formats(
    place: Location, cluster: OpenCluster, skipped: frozenset[BlockRef] = frozenset()
) -> list[CdxSource]:
    """The cluster as a CDX file with the format of its first line, of a block that is not skipped. Nothing if it is empty."""
    block = next(filterfalse(skipped.__contains__, cluster.reader.index.blocks(b"")), None)
    if block is None:
        return []
    line = cluster.blocks.text_of(block, b"").between(b"", block.key + b"!")[0][0]
    return [CdxSource(place, 0, 0, fields_of(line))]


def _is_new(found: Sequence[KnownArchive], inputs: _Inputs, again: bool, failures: Failures) -> bool:
    """Whether the archives of a file are not in the cluster under another name, and no other ones have their names.

    The others are reported, and their `places` deleted: else archives.tsv would say that they are in the cluster.
    """
    places, listed = inputs.places, inputs.listed
    copies = [one for one in found if one.known is Known.OTHER_NAME]
    if copies and not again and len(copies) == len(found):
        reason = f"has the records of {copies[0].other}, which is in the cluster, so it was not added"
        failures.add(copies[0].name, None, reason, "use --again to add it under this name, too")
        for one in found:
            places.pop(one.name, None)
        return False
    other = next((one.name for one in found if _is_other(one.name, one.known, inputs)), None)
    if other is not None:
        reason = f"the cluster has another archive of this name, {listed[other][0]}, so it was not added"
        failures.add(places.pop(other)[0], None, reason, "use --dir-root to give it another name")
        return False
    for one in found if not again else ():
        if one.known is Known.SOME_OTHER_NAME:
            failures.note(
                f"{one.name}: note: some of its records are in the cluster as records of {one.other}, too"
            )
    return True


def _is_other(name: str, known: Known, inputs: _Inputs) -> bool:
    """Whether the cluster has another archive of this name: it has none of its lines, and its place is another one."""
    old, new = inputs.listed.get(name, []), inputs.places.get(name, [])
    return bool(old and new) and set(old).isdisjoint(new) and known is Known.NOTHING


def _listed(place: Location) -> dict[str, list[str]]:
    """The places in the archives.tsv of a cluster."""
    if not has_archive_index(place):
        return {}
    return dict(parse_path_index((place / ARCHIVES).read_bytes()))


def _files(listed: Mapping[str, list[str]], places: Mapping[str, list[str]]) -> dict[str, bytes]:
    """archives.tsv with the new archives, if there are any."""
    given = [(name, place) for name, found in places.items() for place in found]
    new = [(name, place) for name, place in given if place not in listed.get(name, [])]
    if not new:
        return {}
    old = [(name, place) for name, found in listed.items() for place in found]
    return {ARCHIVES: format_path_index([*old, *new])[0]}
