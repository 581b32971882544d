"""What the process of the tests has open."""

from __future__ import annotations

import os
from pathlib import Path


def open_files(directory: Path) -> list[str]:
    """The files below a directory that this process has open, without its name. Deleted ones are among them."""
    opened = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if os.path.lexists(one)]
    return sorted(path.removeprefix(f"{directory}/") for path in opened if path.startswith(f"{directory}/"))
