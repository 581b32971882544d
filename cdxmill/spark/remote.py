"""A cluster at an s3 or hdfs URL, made by Spark. What is there stays, unless --replace is given.

A folder without a cluster       the cluster is written there
A stopped run's unfinished one   the run continues, or another starts from the beginning
A cluster of the same run        nothing is to be done
Another cluster                  refused. With --replace the new one is built in URL/.new, and then takes its place

There is no lock: two runs must not write to one URL at a time.
"""

from __future__ import annotations

import json
import posixpath
import re
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from cdxmill.cluster.files import part_of
from cdxmill.cluster.find import INDEXES
from cdxmill.cluster.finished import COPIED, FINISHED, WORK, Finished, read_finished, write_finished
from cdxmill.cluster.manifest import read_manifest
from cdxmill.cluster.remote_switch import NEW, clear, new_place, repair, switch
from cdxmill.cluster.write import unpublish, write_archive_index, write_cluster_files
from cdxmill.commands.clusters.build import CDX_FOLDER, BuildSummary, archives_file, fingerprint_of
from cdxmill.commands.clusters.zipnum import (
    ClusterSummary,
    ZipnumOptions,
    check_inputs,
    check_made,
    run_of,
    summary_of,
    summary_of_made,
    with_shards,
)
from cdxmill.commands.per_archive.index import IndexSummary, index_to_folder
from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import LOCATIONS, MANIFEST, shard_name
from cdxmill.inputs.named import Input, check_archives
from cdxmill.inputs.sources import Inventory, take_inventory
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import unique_names
from cdxmill.running.failures import Failures
from cdxmill.running.resume import fingerprint
from cdxmill.storage.choose import check_writable, join, list_folder, read_bytes, remove, write_atomic

_NUMBERED = re.compile(r"(?:part-(\d{5,})|cdx-(\d{5,})\.gz)")
_JOB = "job.json"


def build_cluster_at(
    paths: Sequence[str], url: str, options: ZipnumOptions, failures: Failures
) -> ClusterSummary:
    """Build the cluster of CDX files at a URL: see `commands.zipnum.build_cluster`."""
    if not paths:
        raise UsageError("no CDX files found; check the paths")
    check_writable(url)
    inventory = take_inventory(paths, flavours=True)
    by_size, options = not options.shards, with_shards(options, inventory)
    check_inputs(inventory, options)
    run = run_of(inventory, options)
    finished = _finished(url, run, options.replace, failures)
    if finished is not None:
        return summary_of(finished)._replace(by_size=by_size)
    return _write(inventory, url, run, options, failures)._replace(by_size=by_size)


def build_at(
    archives: Sequence[Input],
    url: str,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Index archives to `url`/cdx, and build the cluster of these indexes at `url`: see `commands.build.build`."""
    start = time.monotonic()
    check_archives(archives)
    check_writable(url)
    names = unique_names(archives)
    run = fingerprint_of(names, index_options, zipnum_options)
    finished = _finished(url, run, zipnum_options.replace, failures)
    if finished is not None:
        indexed = IndexSummary(files=0, kept=len(names), captures=0, bytes=0)
        return BuildSummary(indexed, summary_of(finished), time.monotonic() - start)
    cdx = join(url, CDX_FOLDER)
    indexed = index_to_folder(names, cdx, replace(index_options, existing=Rule.RENEW), failures)
    there = list_folder(cdx)
    made = [join(cdx, name) for name in names.values() if name in there]
    if not made:
        raise InputError(url, "no archive can be read, so no cluster was written")
    inventory = take_inventory(made, flavours=True)
    by_size, options = not zipnum_options.shards, with_shards(zipnum_options, inventory)
    check_inputs(inventory, options)
    cluster = _write(inventory, url, run, options, failures, archives_file(names, failures))
    return BuildSummary(indexed, cluster._replace(by_size=by_size), time.monotonic() - start)


def _finished(url: str, run: str, may_replace: bool, failures: Failures) -> Finished | None:
    """The record of the run if its cluster is at the URL. Raises UsageError if the run may not write there."""
    repair(url)
    found = list_folder(url)
    if MANIFEST not in found:
        if WORK not in found or _job(url) is None:
            _check_foreign(url, found)
        return None
    finished = read_finished(url)
    if finished is not None and finished.run == run and not (may_replace and finished.failures):
        finished.report(url, failures)
        return finished
    if not may_replace:
        raise UsageError(
            f"{url}: already has a cluster of other inputs or options; use --replace to replace it, or choose another"
            " directory"
        )
    return None


def _check_foreign(url: str, found: Mapping[str, object]) -> None:
    foreign = [name for name in found if _NUMBERED.fullmatch(name) or name in (*INDEXES, LOCATIONS, ARCHIVES)]
    if foreign:
        raise UsageError(
            f"{url}: has {min(foreign)}, which is not of a cluster of this command (no {MANIFEST}); choose another"
            " directory, or move it away"
        )


def _job(url: str) -> Any:
    """What an unfinished run has noted: its fingerprint, and the names of shards that are cdxmill's."""
    try:
        job = json.loads(read_bytes(join(url, WORK, _JOB)))
        return {"job": str(job["job"]), "shards": list(map(str, job["shards"]))}
    except (InputError, ValueError, TypeError, KeyError):
        return None


def _start(url: str, job: str, shards: int) -> set[str]:
    """Note the run, and take away what other runs left. The shards that no cluster has afterwards."""
    before = _job(url)
    own = set(before["shards"]) if before is not None else set()
    found = list_folder(url)
    if MANIFEST in found:
        own |= {shard.name for shard in read_manifest(join(url, MANIFEST)).shards}
    new = {shard_name(number) for number in range(shards)}
    if before is None or before["job"] != job or MANIFEST in found:
        _note(url, "", own | new)  # before anything is removed or written
        unpublish(url)
        _remove_work(url, kept=_JOB)
        remove(join(url, FINISHED))
        _note(url, job, own | new)
    return own - new


def _note(url: str, job: str, shards: Set[str]) -> None:
    with write_atomic(join(url, WORK, _JOB)) as file:
        file.write(json.dumps({"job": job, "shards": sorted(shards)}).encode())


def _write(
    inventory: Inventory,
    url: str,
    run: str,
    options: ZipnumOptions,
    failures: Failures,
    archives: bytes = b"",
) -> ClusterSummary:
    """Write the cluster to `url`; if there is one, beside it, and switch."""
    options = replace(options, location=options.location or url)
    if MANIFEST not in list_folder(url):
        return _write_to(url, inventory, run, options, failures, archives)
    new = new_place(url)
    built = read_finished(new) if MANIFEST in list_folder(new) else None
    if built is not None and built.run == run:  # killed before the switch
        built.report(url, failures)
        summary = summary_of(built)._replace(new=True)
    else:
        if COPIED in list_folder(new):  # of `publish`
            clear(new)
        summary = _write_to(new, inventory, run, options, failures, archives)
    switch(url)
    return summary


def _write_to(
    url: str,
    inventory: Inventory,
    run: str,
    options: ZipnumOptions,
    failures: Failures,
    archives: bytes,
) -> ClusterSummary:
    assert options.make is not None
    reported = len(failures.items)
    job = fingerprint([source.state() for source in inventory.sources], options.settings())
    surplus = _start(url, job, options.shards)
    made = options.make(inventory, url, options, failures)
    try:
        check_made(made, inventory, url)
    except InputError:  # no input can be read
        if posixpath.basename(url) == NEW:
            clear(url)
        raise
    summary = summary_of_made(made)
    for name in surplus:
        remove(join(url, name))
        remove(join(url, part_of(name)))
    if archives:
        write_archive_index(url, archives)
    else:
        remove(join(url, ARCHIVES))
    write_finished(url, Finished(run, list(map(int, summary[:5])), failures.items[reported:], []))
    write_cluster_files(
        url, made.shards, made.points, options.compressor, options.block_lines, options.location
    )
    _remove_work(url)
    return summary


def _remove_work(url: str, kept: str = "") -> None:
    """Delete the work folder, or all but one file of it. What says whose the shards are goes last."""
    folder = join(url, WORK)
    for name in sorted(list_folder(folder), key=lambda name: name == _JOB):
        if name != kept:
            remove(join(folder, name))
    if not kept and list_folder(url).get(WORK) is not None:
        remove(folder)
