"""add: archives or CDX files -> their lines in a cluster that exists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cdxmill.cluster.archive_index import has_archive_index
from cdxmill.cluster.change import Change, changed_record, delete_kept, open_change
from cdxmill.cluster.exclude import read_excluded
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.clusters.sorting import sort_files
from cdxmill.commands.clusters.zipnum import ZipnumOptions
from cdxmill.commands.collections.change_shards import (
    ChangeWanted,
    change_shards,
    make_changeable,
    work_directory,
)
from cdxmill.commands.collections.identity import Known, KnownArchive, find_known
from cdxmill.commands.collections.summary import LOG, ChangeSummary, logged, summary_of
from cdxmill.commands.per_archive.index import index_options, index_to_directory
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    CDX_DIRECTORY,
    MANIFEST,
    format_path_index,
    parse_path_index,
)
from cdxmill.formats.own_records import FAILURES, OUTPUTS
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import CdxSource, Inventory, check_formats, find_cdx_files, take_inventory
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding
from cdxmill.options.option import path_list
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import identity, unique_names
from cdxmill.outputs.record import OutputRecord, recorded, state_of
from cdxmill.running.failures import Failures
from cdxmill.running.resume import WorkDirectory
from cdxmill.search.lookup import open_searched
from cdxmill.search.query import OpenCluster
from cdxmill.stages.lines.cdx_text import fields_of
from cdxmill.stages.zipnum.change_shard import ChangeRule
from cdxmill.storage.location import Location, ask_all, locate
from cdxmill.storage.own import own_directory
from cdxmill.tasks.sorting import SortResult


def add(asked: Adding, failures: Failures, given: Sequence[Input] | None = None) -> ChangeSummary:
    """Add the lines of archives, or with `cdx` of CDX files, to a cluster. What it has already is not added again.

    `given` are the archives if they were searched before. Raises UsageError for invalid arguments, if there are no inputs, or if lines have another format than those of the
    cluster; InputError if the cluster is corrupt where it would change, StoppedError if it cannot be written.
    """
    paths = _cdx_files(path_list(asked.inputs), failures) if asked.cdx else []
    archives = [] if asked.cdx else given or find_archives(asked, failures)
    make_changeable(asked, failures)
    with open_change(os.fspath(asked.cluster), failures.note) as change, work_directory(change) as scratch:
        delete_kept(change.place, asked.keep_old)
        before = len(failures.items)
        names = unique_names(archives)
        _note_changed(change, names, failures)
        paths += _index(change, names, asked, failures)
        indexed = {archive: name for archive, name in names.items() if _path(change, name) in paths}
        places = {archive.filename: identity(archive.location) for archive in indexed}
        listed = _listed(change)
        found = _sorted(change, paths, places, listed, scratch, asked, failures)
        refused = [name for archive, name in indexed.items() if archive.filename not in places]
        ask_all(Location.remove, [change.place / CDX_DIRECTORY / name for name in refused])
        wanted = ChangeWanted(
            runs=found.runs,
            rule=ChangeRule(change.manifest.numlines),
            processes=asked.processes,
            quiet=asked.quiet,
        )
        done = change_shards(change, wanted, scratch)
        files = _files(listed, places)
        if done.shards != list(change.manifest.shards) or files:
            own = (
                [f"{CDX_DIRECTORY}/{name}" for name in (*names.values(), OUTPUTS, FAILURES)] if names else []
            )
            record = changed_record(change.place, change.number, failures.items[before:], [*own, *files])
            log = logged(change, "add", done, {"inputs": len(paths), "excluded": found.excluded})
            change.commit(done.shards, record, {**files, LOG: log})
    return summary_of(change, done, found.excluded)


def _cdx_files(named: list[str], failures: Failures) -> list[str]:
    """The CDX files that are named. A cluster stands for its shards."""
    found: list[str] = []
    rest = []
    for name in named:
        place = locate(name)
        if place.properties.can_write and (place / MANIFEST).exists():
            found += [str(place / shard.name) for shard in read_manifest(place / MANIFEST).shards]
        else:
            rest.append(name)
    return found + (find_cdx_files(rest, failures) if rest or not found else [])


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
    rows = OutputRecord(directory).last_rows() if directory is not None and names else []
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


def _sorted(
    change: Change,
    paths: Sequence[str],
    places: dict[str, str],
    listed: Mapping[str, list[str]],
    scratch: Path,
    asked: Adding,
    failures: Failures,
) -> SortResult:
    """The lines of the files that are to be added, as sorted runs."""
    excluded = read_excluded(change.place)
    sources = [one for one in take_inventory(paths, formats=True).sources if not _is_empty_list(one)]
    with open_searched(change.place) as cluster:
        _check_format(change, cluster, sources)
        known = {one.path: find_known(one, cluster, excluded) for one in sources}
    chosen = [one for one in sources if _is_new(known[one.path], places, listed, asked.again, failures)]
    if not chosen:
        return SortResult([], [], [])
    points = tuple(change.points)
    options = ZipnumOptions(
        points=points,
        shards=len(points) + 1,
        processes=asked.processes,
        quiet=asked.quiet,
        excluded=tuple(excluded),
    )
    work = WorkDirectory(scratch, "add")
    return sort_files(Inventory(chosen), work, options, failures)


def _is_empty_list(source: CdxSource) -> bool:
    """Whether a CDX file is a text without lines: there was nothing to list. A gzip file of no bytes is truncated."""
    return source.is_empty and not source.path.endswith(".gz")


def _check_format(change: Change, cluster: OpenCluster, sources: Iterable[CdxSource]) -> None:
    """Raise UsageError if the lines have another format than those of the cluster."""
    block = next(cluster.reader.index.blocks(b""), None)
    if block is None:
        return
    line = cluster.blocks.text_of(block, b"").between(b"", block.key + b"!")[0][0]
    own = CdxSource(change.place, 0, 0, fields_of(line))
    check_formats([own, *sources])


def _is_new(
    found: Sequence[KnownArchive],
    places: dict[str, str],
    listed: Mapping[str, list[str]],
    again: bool,
    failures: Failures,
) -> bool:
    """Whether the archives of a file are not in the cluster under another name, and no other ones have their names.

    The others are reported, and their `places` deleted: else archives.tsv would say that they are in the cluster.
    """
    copies = [one for one in found if one.known is Known.OTHER_NAME]
    if copies and not again and len(copies) == len(found):
        reason = f"has the records of {copies[0].other}, which is in the cluster, so it was not added"
        failures.add(copies[0].name, None, reason, "use --again to add it under this name, too")
        for one in found:
            places.pop(one.name, None)
        return False
    other = next((one.name for one in found if _is_other(one.name, one.known, places, listed)), None)
    if other is not None:
        reason = f"the cluster has another archive of this name, {listed[other][0]}, so it was not added"
        failures.add(places.pop(other), None, reason, "use --dir-root to give it another name")
        return False
    for one in found if not again else ():
        if one.known is Known.SOME_OTHER_NAME:
            failures.note(
                f"{one.name}: note: some of its records are in the cluster as records of {one.other}, too"
            )
    return True


def _is_other(name: str, known: Known, places: Mapping[str, str], listed: Mapping[str, list[str]]) -> bool:
    """Whether the cluster has another archive of this name: it has none of its lines, and its place is another one."""
    is_elsewhere = name in places and bool(listed.get(name)) and places[name] not in listed[name]
    return is_elsewhere and known is Known.NOTHING


def _listed(change: Change) -> dict[str, list[str]]:
    """The places in archives.tsv."""
    if not has_archive_index(change.place):
        return {}
    return dict(parse_path_index((change.place / ARCHIVES).read_bytes()))


def _files(listed: Mapping[str, list[str]], places: Mapping[str, str]) -> dict[str, bytes]:
    """archives.tsv with the new archives, if there are any."""
    new = [(name, place) for name, place in places.items() if place not in listed.get(name, [])]
    if not new:
        return {}
    old = [(name, place) for name, found in listed.items() for place in found]
    return {ARCHIVES: format_path_index([*old, *new])[0]}
