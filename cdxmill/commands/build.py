"""build: archives -> a ZipNum cluster, in one command."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.commands.index import IndexOptions, IndexSummary, index_to_folder
from cdxmill.commands.zipnum import ClusterSummary, ZipnumOptions, build_cluster
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import whole_names
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.quantities import human_bytes, human_seconds
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

    If a build was stopped, the same command, started again, indexes only what is missing.
    """
    start = time.monotonic()
    names = whole_names(archives)
    cdx = folder / CDX_FOLDER
    with hold(folder, failures.note):
        options = _resumed(cdx, names, index_options)
        summary = index_to_folder(names, cdx, options, failures)
        made = [str(cdx / name) for name in names.values() if (cdx / name).exists()]
        cluster = build_cluster(made, folder, zipnum_options, failures)
    return BuildSummary(summary, cluster, time.monotonic() - start)


def _resumed(folder: Path, names: Mapping[Input, str], options: IndexOptions) -> IndexOptions:
    """`options` with `skip_existing`. Indexes that were made with other options or file names are deleted first."""
    captures = asdict(options.captures)
    captures["records"] = captures["records"] and sorted(captures["records"])  # a set has no order
    settings = repr((__version__, captures, options.line_format))
    known = _load(folder / _OPTIONS)
    if known.get("settings") != settings:
        shutil.rmtree(folder, ignore_errors=True)
        known = {}
    filenames: dict[str, str] = known.get("filenames", {})
    with stopping(folder):
        for archive, name in names.items():
            if filenames.get(archive.path) != archive.filename:
                (folder / name).unlink(missing_ok=True)
                filenames[archive.path] = archive.filename
    with write_atomic(folder / _OPTIONS) as file:
        file.write(json.dumps({"settings": settings, "filenames": filenames}).encode())
    return replace(options, skip_existing=True)


def _load(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content
