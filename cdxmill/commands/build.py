"""build: archives -> a ZipNum cluster, in one command."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.cluster.output import Output, open_output
from cdxmill.commands.index import FAILURES, IndexOptions, IndexSummary, index_to_folder
from cdxmill.commands.zipnum import ClusterSummary, ZipnumOptions, check_inputs, summary_of, write_cluster
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import whole_names
from cdxmill.inputs.sources import take_inventory
from cdxmill.running.failures import Failures
from cdxmill.running.quantities import human_bytes, human_seconds
from cdxmill.running.resume import fingerprint
from cdxmill.storage.choose import absolute, is_remote, status
from cdxmill.storage.local import stopping, write_atomic
from cdxmill.version import __version__

CDX_FOLDER = "cdx"
_OPTIONS = ".options"


class BuildSummary(NamedTuple):
    """What `build` did."""

    indexed: IndexSummary
    cluster: ClusterSummary
    seconds: float

    def report(self, failures: Failures, folder: Path) -> str:
        """Return the closing lines of a cluster that was built in `folder`."""
        if not self.cluster.new:
            return f"{folder}: {self.cluster}"
        rate = human_bytes(self.indexed.bytes / max(self.seconds, 1e-6))
        lines = [
            self.indexed.report(failures, str(folder / CDX_FOLDER)),
            f"{folder}: {self.cluster}",
            f"done in {human_seconds(self.seconds)}, {rate} of archives per second",
        ]
        if self.cluster.lines:
            lines.append(
                f"next: cdxmill lookup {folder} 'http://example.com/*', or serve it with pywb (conf/pywb)"
            )
        return "\n".join(lines)


def build(
    archives: Sequence[Input],
    folder: Path,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Index `archives` to `folder`/cdx, and build the cluster of these indexes in `folder`.

    If a build was stopped, the same command, started again, indexes only what is missing. Raises UsageError as
    `build_cluster` does.
    """
    if not archives:
        raise UsageError("no archives found; check the paths")
    start = time.monotonic()
    names = whole_names(archives)
    check_indexes(folder / CDX_FOLDER, names)
    run = _fingerprint(names, index_options, zipnum_options)
    with open_output(folder, run, zipnum_options.replace, failures, zipnum_options.points) as output:
        if output.finished is not None:
            cluster = summary_of(output.finished)
            indexed = IndexSummary(files=0, skipped=len(names), captures=0, bytes=0)
        else:
            indexed = _index(names, output, index_options, failures)
            cluster = _zipnum(names, output, folder, run, zipnum_options, failures)
            output.finish()
    return BuildSummary(indexed, cluster, time.monotonic() - start)


def _fingerprint(names: Mapping[Input, str], indexing: IndexOptions, options: ZipnumOptions) -> str:
    """Remote archives are not asked: one request for each would make a rerun slow."""
    states = []
    for archive, name in names.items():
        found = None if is_remote(archive.path) else status(archive.path)
        states.append((absolute(archive.path), archive.filename, name, found))
    return fingerprint("build", states, _settings(indexing), options.settings(), options.location)


def _index(
    names: Mapping[Input, str], output: Output, options: IndexOptions, failures: Failures
) -> IndexSummary:
    cdx = output.work / CDX_FOLDER
    if output.work != output.folder:
        _reuse(output.folder / CDX_FOLDER, cdx, names)
    return index_to_folder(names, cdx, _resumed(cdx, names, options), failures)


def _zipnum(
    names: Mapping[Input, str],
    output: Output,
    folder: Path,
    run: str,
    options: ZipnumOptions,
    failures: Failures,
) -> ClusterSummary:
    cdx = output.work / CDX_FOLDER
    made = [name for name in names.values() if (cdx / name).exists()]
    if not made:
        raise InputError(str(folder), "no archive can be read, so no cluster was written")
    inventory = take_inventory([str(cdx / name) for name in made], flavours=True)
    check_inputs(inventory, options)
    files = [f"{CDX_FOLDER}/{name}" for name in (*made, _OPTIONS, FAILURES)]
    return write_cluster(inventory, output, folder, run, options, failures, files)


def _settings(options: IndexOptions) -> str:
    """Everything besides an archive and its file name that its index depends on."""
    captures = asdict(options.captures)
    captures["records"] = captures["records"] and sorted(captures["records"])  # a set has no order
    return repr((__version__, captures, options.line_format))


def check_indexes(cdx: Path, names: Mapping[Input, str]) -> None:
    """Raise UsageError if an index would get the name of a file that `build` did not write."""
    known = _load(cdx / _OPTIONS).get("outputs", {})
    for name in names.values():
        if name not in known and (cdx / name).exists():
            raise UsageError(f"{cdx / name}: exists, and build did not write it; choose another directory")


def _reuse(old: Path, new: Path, names: Mapping[Input, str]) -> None:
    """Give the indexes of the old cluster a second name in the new one: they need not be made again."""
    if (new / _OPTIONS).exists() or not (old / _OPTIONS).exists():
        return
    known = _load(old / _OPTIONS).get("outputs", {})
    with stopping(new):
        new.mkdir(exist_ok=True)
        for name in names.values():
            if name in known:
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                with suppress(OSError):  # a file system without hard links
                    os.link(old / name, new / name)
        for name in (FAILURES, _OPTIONS):
            if (old / name).exists():
                shutil.copyfile(old / name, new / name)


def _resumed(folder: Path, names: Mapping[Input, str], options: IndexOptions) -> IndexOptions:
    """`options` with `skip_existing`. Indexes that were made with other options or file names are deleted first."""
    settings = _settings(options)
    known = _load(folder / _OPTIONS)
    outputs: dict[str, str] = known.get("outputs", {})
    wanted = {name: archive.filename for archive, name in names.items()}
    with stopping(folder):
        for name, filename in outputs.items():
            if known["settings"] != settings or wanted.get(name, filename) != filename:
                (folder / name).unlink(missing_ok=True)
    with write_atomic(folder / _OPTIONS) as file:
        file.write(json.dumps({"settings": settings, "outputs": {**outputs, **wanted}}).encode())
    return replace(options, skip_existing=True)


def _load(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content
