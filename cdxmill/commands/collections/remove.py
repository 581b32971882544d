"""remove: lines of URLs, keys, archives or times -> gone from a cluster and from the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain

from cdxmill.cluster.archive_index import has_archive_index
from cdxmill.cluster.change import Change, changed_record, delete_kept, open_change
from cdxmill.cluster.exclude import EXCLUDED, ranges_of
from cdxmill.cluster.write import kept_shards
from cdxmill.commands.collections.change_shards import (
    ChangeWanted,
    Done,
    change_shards,
    make_changeable,
    work_directory,
)
from cdxmill.commands.collections.removal import (
    Removal,
    Restriction,
    checked_times,
    sort_keys,
)
from cdxmill.commands.collections.summary import LOG, ChangeSummary, logged, summary_of
from cdxmill.errors import AbsentError, UsageError
from cdxmill.formats.clusters.zipnum import (
    ARCHIVES,
    BEYOND,
    CDX_DIRECTORY,
    format_path_index,
    parse_path_index,
)
from cdxmill.formats.lines.capture_fields import field_reader
from cdxmill.formats.lines.lookup_query import TimeRange
from cdxmill.options.collections import Removing
from cdxmill.options.option import optional_path, text_list
from cdxmill.outputs.names import unique_name
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.zipnum.change_shard import ChangeRule
from cdxmill.storage.location import locate
from cdxmill.storage.scratch import Scratch

Print = Callable[[bytes], object]


def remove(asked: Removing, failures: Failures, out: Print | None = None) -> ChangeSummary:
    """Remove lines from a cluster. With `dry_run`, pass those that would go to `out`, and change nothing.

    At the end, no file of the cluster has the lines: also the shards that were kept for readers are deleted, and the CDX
    files of archives that lines were removed of. Raises UsageError for invalid arguments, InputError if the cluster is
    corrupt where it would change, StoppedError if it cannot be written.
    """
    archives = _archives(optional_path(asked.archives))
    excluded = [_pattern(one, asked.match_type) for one in text_list(asked.queries)] if asked.exclude else []
    if not asked.dry_run:
        make_changeable(asked, failures)
    with open_change(os.fspath(asked.cluster), failures.note) as change, work_directory(change) as scratch:
        wanted = ChangeWanted(
            removal=_removal(asked, archives, Scratch(scratch)),
            rule=ChangeRule(change.manifest.numlines),
            processes=asked.processes,
            quiet=asked.quiet,
        )
        done = change_shards(change, wanted, scratch, writes=not asked.dry_run)
        if asked.dry_run:
            _print(done, out)
        else:
            _commit(change, done, asked, archives, excluded)
            if kept_shards(change.place):
                _wait(change, asked)
                delete_kept(change.place, 0)
    return summary_of(change, done)


def _archives(path: str | None) -> frozenset[str] | None:
    """The names in a list of archives. Raises UsageError if it has none."""
    if path is None:
        return None
    data = locate(path).read_bytes().decode("utf-8", "surrogateescape")
    names = frozenset(filter(None, (line.split("\t")[0].strip() for line in data.splitlines())))
    if not names:
        raise UsageError(f"{path}: has no names of archives")
    return names


def _removal(asked: Removing, archives: frozenset[str] | None, scratch: Scratch) -> Removal:
    queries = text_list(asked.queries)
    times = checked_times(asked.from_ts, asked.to)
    if not queries and asked.keys is None and archives is None and not any(times):
        raise UsageError("nothing to remove; give QUERY, --keys, --archives, --from or --to")
    ranges = ranges_of(queries, asked.match_type, times)
    keys = optional_path(asked.keys)
    if not queries and keys is None:
        ranges = [LineRange(b"", BEYOND)]
    runs = sort_keys(keys, scratch) if keys is not None else []
    return Removal(ranges, Restriction(archives, times), runs, scratch)


def _print(done: Done, out: Print | None) -> None:
    if out is not None:
        for lines in done.gone_lines():
            out(text_of(lines))


def _commit(
    change: Change, done: Done, asked: Removing, archives: frozenset[str] | None, excluded: Sequence[str]
) -> None:
    files: dict[str, bytes] = {}
    queries = text_list(asked.queries)
    is_whole = not (queries or asked.keys or asked.from_ts or asked.to)
    if archives is not None and is_whole and has_archive_index(change.place):
        files |= _without(change, archives)
    if excluded:
        files |= _excluded(change, excluded)
    if done.shards == list(change.manifest.files) and not files:
        return
    said = {
        "queries": queries,
        "match_type": asked.match_type,
        "keys": optional_path(asked.keys),
        "archives": optional_path(asked.archives),
        "from": asked.from_ts,
        "to": asked.to,
    }
    stale = _cdx_files(change, done)
    record = changed_record(change.place, change.number, [], [])
    record = record._replace(files=[name for name in record.files if name not in stale])
    change.commit(done.shards, record, {**files, LOG: logged(change, "remove", done, said)}, stale)


def _without(change: Change, archives: Iterable[str]) -> dict[str, bytes]:
    """archives.tsv without some archives, if it lists one of them."""
    listed, gone = list(parse_path_index((change.place / ARCHIVES).read_bytes())), set(archives)
    left = ((name, one) for name, places in listed if name not in gone for one in places)
    return {ARCHIVES: format_path_index(left)[0]} if gone & {name for name, _ in listed} else {}


def _excluded(change: Change, patterns: Sequence[str]) -> dict[str, bytes]:
    """The exclusion list with more patterns, if it has not all of them."""
    try:
        before = (change.place / EXCLUDED).read_bytes()
    except AbsentError:
        before = b"# What must never come back: a URL or pattern in each line, as for cdxmill remove\n"
    known = set(before.decode("utf-8", "surrogateescape").splitlines())
    new = [pattern for pattern in patterns if pattern not in known]
    more = "".join(f"{pattern}\n" for pattern in new)
    return {EXCLUDED: before + more.encode("utf-8", "surrogateescape")} if new else {}


def _pattern(query: str, match_type: str | None) -> str:
    """The pattern that means the same as a query with a match type. Raises UsageError if there is none."""
    bare = query.removesuffix("*")
    if match_type == "host":  # its range is larger, by keys that no URL has
        return f"{bare.rstrip('/')}/*"
    pattern = {"prefix": f"{query}*", "domain": f"*.{bare}"}.get(match_type or "", query)
    wanted = ranges_of([query], match_type, TimeRange())
    if ranges_of([pattern], None, TimeRange()) != wanted:
        raise UsageError(
            f"{query}: no pattern of exclude.txt means it with --match-type {match_type}; omit --exclude"
        )
    return pattern


def _cdx_files(change: Change, done: Done) -> list[str]:
    """The paths of the CDX files beside the cluster that have removed lines."""
    if not done.gone or not has_archive_index(change.place):
        return []
    read, names = field_reader("filename"), set[str]()
    for line in chain.from_iterable(done.gone_lines()):
        with suppress(ValueError):
            names.add(read(line))
    listed = dict(parse_path_index((change.place / ARCHIVES).read_bytes()))
    directory = change.place / CDX_DIRECTORY
    there = directory.entries()
    found = [unique_name(place) for name in sorted(names) for place in listed.get(name, ())]
    return [f"{CDX_DIRECTORY}/{name}" for name in found if name in there]


def _wait(change: Change, asked: Removing) -> None:
    """Wait until readers that have opened the cluster before have had their time."""
    kept = kept_shards(change.place)
    end = max(kept.values(), default=0) + asked.keep_old
    with Progress("waiting for readers", 1, 0, asked.quiet) as progress:
        while (left := end - time.time()) > 0:
            time.sleep(min(left, 0.5))
            progress.tick()
        progress.advance()
