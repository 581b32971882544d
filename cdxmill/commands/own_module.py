"""A module of the user. `scan` imports it without the counters of `count`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


def imported(module: str) -> ModuleType:
    """Import a module of the user, also from the working directory.

    The working directory is searched last, and only during this import. Otherwise a file there could take the place of a
    library, also of an optional one that is not installed.
    """
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(module)
    finally:
        sys.path[:] = before
