"""A disk that fails for some files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest


def fail_reads(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Let reads of files whose paths end in these names fail, in this process."""
    pread = os.pread

    def failing(handle: int, size: int, offset: int) -> bytes:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if any(path.endswith(f"/{name}") for name in names):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(handle, size, offset)

    patch.setattr(os, "pread", failing)
