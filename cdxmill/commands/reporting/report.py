"""report: clusters and CDX files -> what is in them, as tables, JSON and one HTML file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.checks.claims import ClusterFiles, overlay_tasks, read_claims, shard_tasks
from cdxmill.cluster.write import files_read
from cdxmill.commands.reporting.parts import PartSums, ReportPart, public_suffixes, read_part
from cdxmill.commands.reporting.sums import Sums
from cdxmill.errors import InputError, UsageError, of_named_file
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.own_records import FAILURES, parse_row
from cdxmill.options.option import AnyPath, required_paths
from cdxmill.options.reports import Reporting
from cdxmill.outputs.names import check_inputs_stay, output_file, writing
from cdxmill.running.failures import Failure, Failures, stop_at_outage
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.storage.location import Location, locate, total_size

Report = dict[str, Any]
"""A report as its JSON has it: see docs/report.md."""
_Write = Callable[[Report], bytes]
FORMAT = 1
_EARLIER = 100
"""Failures of the build that are listed."""
_HEAD = 64 << 20
"""Bytes of the JSON of a report that are read at most."""


class Inputs(NamedTuple):
    """What is read: the parts, in the order of their lines; the manifests of clusters, by their paths; and earlier failures."""

    named: list[str]
    parts: list[ReportPart]
    manifests: dict[str, Manifest | None]
    earlier: list[Failure]

    @property
    def places(self) -> list[Location]:
        """The files that are read. Those of clusters are looked up: only a run that replaces a file asks for them."""
        parts = [locate(part.path) for part in self.parts]
        return [*parts, *(place for name in self.named for place in files_read(name))]


def report_asked(asked: Reporting, failures: Failures) -> Report:
    """Make a report, and write the files that were asked for.

    Raises UsageError if there is no input, or if an output exists and may not be replaced, or is an input; InputError if no input can be read;
    StoppedError if a machine is at fault or an output cannot be written.
    """
    public_suffixes()  # before anything is read
    outputs = _outputs(asked)
    named = required_paths(asked.inputs)
    inputs = find_inputs(named, failures)
    replaced = [place for _, place in outputs] if asked.replace else []
    if replaced:
        check_inputs_stay(replaced, inputs.places)
    other = None if asked.compare is None else _other(str(asked.compare), replaced, asked, failures)
    report = make_report(inputs, asked, failures)
    if other is not None:
        from cdxmill.stages.report.compare import difference

        report["compared"] = difference(report, other)
    for write, place in outputs:
        with writing(place, replace=asked.replace) as file:
            file.write(write(report))
    return report


def format_json(report: Report) -> bytes:
    """The report as JSON, each of its parts on a line. With an indent, Python would write it in four times the time."""
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in report.items()]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _format_html(report: Report) -> bytes:
    from cdxmill.stages.report.page import format_page

    return format_page(report)


def _outputs(asked: Reporting) -> list[tuple[_Write, Location]]:
    if asked.html == "-":
        raise UsageError("--html -: the page is not written to stdout; give the name of a file")
    wanted: list[tuple[_Write, AnyPath | None]] = [(format_json, asked.json), (_format_html, asked.html)]
    found = [
        (write, output_file(str(path), replace=asked.replace))
        for write, path in wanted
        if path is not None and path != "-"
    ]
    if len(found) == 2 and found[0][1].is_same(found[1][1]):
        raise UsageError("--html and --json name one file; give two")
    return found


def find_inputs(named: Sequence[str], failures: Failures) -> Inputs:
    """Look at what was named. Raises UsageError if it is neither a cluster nor a CDX file, StoppedError if a machine is at fault."""
    inputs = Inputs(list(named), [], {}, [])
    clusters = {name: files for name in named if (files := _cluster(name)) is not None}
    with_urls = len(named) > 1 or not clusters
    for name in named:
        if name in clusters:
            _add_cluster(inputs, clusters[name], failures, with_urls)
    if others := [name for name in named if name not in clusters]:
        from cdxmill.inputs.cdx_files import find_cdx_files  # most reports are about clusters

        for path in find_cdx_files(others, failures):
            inputs.parts.append(ReportPart(path, None, with_urls))
    return inputs


def _cluster(name: str) -> ClusterFiles | None:
    with suppress(UsageError):
        return ClusterFiles(locate(name))
    return None


def _add_cluster(inputs: Inputs, files: ClusterFiles, failures: Failures, with_urls: bool) -> None:
    def take(found: list[Failure]) -> None:
        stop_at_outage(found)
        for one in found:
            failures.report(one)

    claims = read_claims(files, take)
    overlays = overlay_tasks(files, claims)
    shards = [*shard_tasks(files, claims), *overlays]
    with_urls = with_urls or bool(overlays)  # they have URLs of the shards
    inputs.parts.extend(ReportPart(str(shard.place), shard, with_urls) for shard in shards)
    inputs.manifests[str(files.directory)] = claims.manifest
    inputs.earlier.extend(_earlier_failures(files.directory))


def _earlier_failures(directory: Location) -> list[Failure]:
    """What the build could not index: the lists in a local cluster and in its directory of indexes."""
    found: list[Failure] = []
    local = directory.directory
    for place in () if local is None else (local / FAILURES, local / "cdx" / FAILURES):
        if place.is_symlink() or not place.is_file():
            continue
        rows = map(parse_row, place.read_bytes().splitlines())
        found += [
            Failure(row[0], int(row[1]) if row[1].isdecimal() else None, row[2], row[3])
            for row in rows
            if len(row) == 4
        ]
    return found


def make_report(inputs: Inputs, asked: Reporting, failures: Failures) -> Report:
    """Read all parts, and add them up.

    Raises InputError if no input can be read, and StoppedError if a machine is at fault: what cannot be read now may be whole.
    """
    sums = Sums(is_one=len(inputs.parts) <= 1 or not inputs.parts[0].with_urls)
    early: dict[int, PartSums] = {}
    with Progress("reading lines", len(inputs.parts), _size_of(inputs.parts), asked.quiet) as progress:
        failures.show_on(progress)
        for number, part in run_tasks(read_part, inputs.parts, asked.processes, progress.tick):
            stop_at_outage(part.findings)
            for finding in part.findings:
                failures.report(finding)
            early[number] = sums.take(part)
            progress.advance()
    if failures.count and not inputs.manifests and not any(part.totals.captures for part in early.values()):
        raise InputError(", ".join(inputs.named), "no input can be read, so there is no report")
    report = {"format": FORMAT, "inputs": inputs.named, **sums.report([early[one] for one in sorted(early)])}
    report["clusters"] = [_cluster_of(path, manifest) for path, manifest in inputs.manifests.items()]
    report["build_failures"] = {
        "number": len(inputs.earlier),
        "first": [str(one) for one in inputs.earlier[:_EARLIER]],
    }
    report["failures"] = {"number": failures.count, "first": [str(one) for one in failures.items[:_EARLIER]]}
    return report


def _size_of(parts: Sequence[ReportPart]) -> int:
    with suppress(InputError):
        return total_size([locate(part.path) for part in parts])
    return 0


def _cluster_of(path: str, manifest: Manifest | None) -> Report:
    """What the manifest says of a cluster. `compact` is advice, "" if there is none."""
    if manifest is None:
        return {"path": path, "lines": None, "changes": None, "compact": ""}
    full = -(-manifest.lines // manifest.numlines)
    most = full + full // 2 + len(manifest.shards)
    advice = f"{manifest.blocks} blocks, where {full} would do: cdxmill compact {path}"
    return {
        "path": path,
        "lines": manifest.lines,
        "changes": manifest.change,
        "compact": advice if manifest.change and manifest.blocks > most else "",
    }


def _other(named: str, replaced: Sequence[Location], asked: Reporting, failures: Failures) -> Report:
    """The report to compare with: read from JSON, or made of files that are not `replaced`. Raises UsageError, StoppedError."""
    if named.endswith(".json"):
        check_inputs_stay(replaced, [locate(named)])
        return read_report(named)
    try:
        inputs = find_inputs([named], failures)
        if replaced:
            check_inputs_stay(replaced, inputs.places)
        return make_report(inputs, asked, failures)
    except InputError as error:
        raise of_named_file(error, "--compare ") from None


def read_report(path: str) -> Report:
    """The JSON of a report. Raises UsageError if it is none."""
    try:
        with Path(path).open("rb") as file:
            found = json.loads(file.read(_HEAD))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON"
        raise UsageError(f"{path}: cannot be read as a report ({reason})") from None
    from cdxmill.stages.report.compare import is_report

    if not is_report(found):
        raise UsageError(f"{path}: is not the JSON of cdxmill report, format {FORMAT}")
    return dict(found)
