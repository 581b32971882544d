"""A module of the user. `scan` imports it without the counters of `count`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


def imported(module: str) -> ModuleType:
    """Import a module of the user, also from the working directory.

    That is searched after all libraries, and only meanwhile: it may hold a file that is named like a library, also like
    one that is not installed and that another library tries.
    """
    before = list(sys.path)
    sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(module)
    finally:
        sys.path[:] = before
