"""What runs on the nodes of Spark for `scan`: one archive, in a process that may hang or crash."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.own_function import load_module
from cdxmill.commands.scanning.options import CALL, ListPlace, ScanOptions, compiled
from cdxmill.commands.scanning.scan import scan_watched
from cdxmill.commands.scanning.scan_one import ScannedArchive, ScanTask
from cdxmill.spark.tasks import scratch_on_node


class ScanPlace(NamedTuple):
    """What the driver has: its directory, and the sources of the user's modules by name.

    `scratch` is a directory of the nodes for temporary files, or "".
    """

    directory: str
    sources: dict[str, bytes]
    scratch: str


def own_sources(options: ScanOptions) -> dict[str, bytes]:
    """The sources of the modules of --call and --call-page that are single files, by name. They are imported already."""
    found = {}
    for call in map(CALL.fullmatch, (*options.calls, *options.page_calls)):
        name = call["module"] if call else ""
        file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        if file.suffix == ".py" and file.stem == name:
            found[name] = file.read_bytes()
    return found


def scan_archive(place: ScanPlace, task: ScanTask) -> ScannedArchive:
    """Scan an archive. Temporary files are in `place.scratch`, or on the node's own disk."""
    with scratch_on_node(place.scratch) as directory:
        for name, source in place.sources.items():
            path = Path(directory, f"{name}.py")
            path.write_bytes(source)
            sys.modules[name] = load_module(path)
        ListPlace.base = place.directory
        compiled(task.options)  # once for all archives of this process
        own = replace(task, scratch=Path(directory) / "scan")
        ((_, result),) = scan_watched([own], 1, lambda working: None)
    return result
