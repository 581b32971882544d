"""build: archives -> a ZipNum cluster, in one command."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.output import Output, open_output
from cdxmill.commands.clusters.next_step import next_commands
from cdxmill.commands.clusters.zipnum import (
    Beside,
    ClusterSummary,
    check_inputs,
    summary_of,
    with_exclusions,
    with_shards,
    write_cluster,
)
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.per_archive.index import IndexOptions, IndexSummary, index_to_directory
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, CDX_DIRECTORY, format_path_index
from cdxmill.formats.own_records import FAILURES, OUTPUTS
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_bytes, human_seconds
from cdxmill.outputs.existing import Rule, up_to_date
from cdxmill.outputs.names import check_index_names, identity, unique_names
from cdxmill.outputs.record import check_own_records, link_outputs
from cdxmill.running.failures import Failures
from cdxmill.running.resume import fingerprint
from cdxmill.storage.location import Location, PathOrUrl, join, locate
from cdxmill.storage.own import own_directory


class BuildSummary(NamedTuple):
    """What `build` did."""

    indexed: IndexSummary
    cluster: ClusterSummary
    seconds: float

    def report(self, failures: Failures, directory: PathOrUrl) -> str:
        """Return the closing lines of a cluster that was built in `directory`."""
        if not self.cluster.new:
            return f"{directory}: {self.cluster}"
        rate = human_bytes(self.indexed.bytes / max(self.seconds, 1e-6))
        lines = [
            self.indexed.report(failures, join(directory, CDX_DIRECTORY)),
            f"{directory}: {self.cluster}",
            f"done in {human_seconds(self.seconds)}, {rate} of archives per second",
        ]
        return "\n".join(filter(None, (*lines, next_commands(str(directory)))))


def build(
    archives: Sequence[Input],
    place: PathOrUrl,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Index `archives` to `place`/cdx, and build the cluster of these indexes in `place`; on another engine, also at a URL.

    If a build was stopped, the same command, started again, indexes only what is missing. Raises UsageError as
    `build_cluster` does, StoppedError if a machine was at fault for an archive.
    """
    start = time.monotonic()
    check_index_names(archives)
    place = locate(place)
    place.check_writable()
    if any(place.is_same(parent) for parent in {one.location.stored_in.parent for one in archives}):
        raise UsageError(f"{place}: has archives that are read; choose another directory for the cluster")
    zipnum_options = with_exclusions(zipnum_options, place)
    names = unique_names(archives)
    run = _fingerprint_of(names, index_options, zipnum_options)
    is_far, points = zipnum_options.is_far, zipnum_options.points
    with open_output(place, run, zipnum_options.replace, failures, points, is_far) as output:
        if output.finished is not None:
            _restore_archives_file(names, output.place, zipnum_options.replace, failures)
            cluster = summary_of(output.finished)
            indexed = IndexSummary(files=0, kept=len(names), captures=0, bytes=0)
        else:
            indexed = _index(names, output, index_options, failures)
            _check_reached(failures, place)
            cluster = _zipnum(names, output, place, run, zipnum_options, failures)
            output.finish()
    return BuildSummary(indexed, cluster, time.monotonic() - start)


def _fingerprint_of(names: Mapping[Input, str], indexing: IndexOptions, options: ZipnumOptions) -> str:
    """The fingerprint of everything that the files of a build depend on.

    Remote archives are not asked: one request for each would make a rerun slow.
    """
    settings = indexing.settings()
    states = [
        (
            identity(archive.location),
            settings.digest(archive.filename),
            None if archive.location.is_remote else archive.location.status(),
        )
        for archive in names
    ]
    return fingerprint("build", states, options.settings(), options.location)


def _index(
    names: Mapping[Input, str], output: Output, options: IndexOptions, failures: Failures
) -> IndexSummary:
    """Index what is missing in the directory of indexes. Those of the cluster that is replaced get a second name there."""
    if (indexes := _indexes(output).directory) is not None:
        own_directory(indexes)
    if output.work != output.place and not output.place.is_remote:
        check_own_records(Path(output.place.local, CDX_DIRECTORY))
        cdx, old = (Path(place.local, CDX_DIRECTORY) for place in (output.work, output.place))
        kept = up_to_date(names, old, options.settings())
        link_outputs(old, cdx, [names[archive] for archive in kept if not (cdx / names[archive]).exists()])
    return index_to_directory(names, _indexes(output), replace(options, existing=Rule.RENEW), failures)


def _check_reached(failures: Failures, place: Location) -> None:
    """Raise StoppedError if an archive may be whole, but could not be read: the cluster would lack its lines."""
    if failures.outages:
        raise StoppedError(
            f"{place}: no cluster was written, because {count(failures.outages, 'input')} could not be read;"
            " correct this and run the same command: it continues"
        )


def _indexes(output: Output) -> Location:
    """Where the indexes are: with the cluster. At a URL, where no file has two names, they stay when it is replaced."""
    return (output.place if output.place.is_remote else output.work) / CDX_DIRECTORY


def _zipnum(
    names: Mapping[Input, str],
    output: Output,
    place: Location,
    run: str,
    options: ZipnumOptions,
    failures: Failures,
) -> ClusterSummary:
    cdx = _indexes(output)
    there = cdx.entries()
    made = [name for name in names.values() if name in there]
    if not made:
        raise InputError(str(place), "no archive can be read, so no cluster was written")
    inventory = take_inventory([str(cdx / name) for name in made], formats=True)
    by_size, options = not options.shards, with_shards(options, inventory)
    check_inputs(inventory, options)
    files = [f"{CDX_DIRECTORY}/{name}" for name in (*made, OUTPUTS, FAILURES) if not cdx.is_remote]
    archives = _archives_file(names, failures)
    beside = Beside([*files, ARCHIVES] if archives else files, archives)
    summary = write_cluster(inventory, output, place, run, options, failures, beside)
    return summary._replace(by_size=by_size)


def _restore_archives_file(
    names: Mapping[Input, str], place: Location, replaces: bool, failures: Failures
) -> None:
    """Write the archives.tsv of a finished cluster that has lost it; with `replaces`, also over one that was changed."""
    path, content = place / ARCHIVES, _archives_file(names, failures)
    is_there = path.exists()
    if not content or (is_there and path.read_bytes() == content):
        return
    if is_there and not replaces:
        failures.note(f"{path}: note: kept, but it was changed; use --replace to write it again")
        return
    with path.write_atomic() as file:
        file.write(content)


def _archives_file(names: Mapping[Input, str], failures: Failures) -> bytes:
    """The content of archives.tsv. Places that it cannot have are reported."""
    content, left = format_path_index((archive.filename, identity(archive.location)) for archive in names)
    for place in left:
        failures.note(f"{place}: note: not in {ARCHIVES}, because of a tab or a line end in its name")
    return content
