"""What runs on the nodes of Spark for `scan`: one archive, in a process that may hang or crash."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.own_function import load_module
from cdxmill.commands.scanning.options import ListPlace, ScanOptions, compiled
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
    for name in map(_module_in, (*options.calls, *options.page_calls)):
        file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        if file.suffix == ".py" and file.stem == name:
            found[name] = file.read_bytes()
    return found


def _module_in(call: str) -> str:
    """The module of MODULE:FUNCTION, or of NAME:MODULE.FUNCTION with or without a type.

    >>> _module_in("steps:words"), _module_in("n:steps.words:int"), _module_in("n:own.steps.words")
    ('steps', 'steps', 'own.steps')
    """
    first, *others = call.split(":")
    return first if len(others) == 1 and "." not in others[0] else others[0].rpartition(".")[0]


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
