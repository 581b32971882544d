"""A local file in memory: small reads at random places without a system call each."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cdxmill.errors import InputError
from cdxmill.storage.local.files import open_ranges


@contextmanager
def open_mapped(path: str) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    """Open a local file: `read_at(offset, size)` and the size of the file. Raises as `local.open_ranges`.

    Requires: nobody truncates the file while it is open. cdxmill replaces files and never truncates one.
    """
    with open_ranges(path) as read_at:
        if not read_at(0, 1):  # empty files cannot be mapped, and pipes cannot be read here
            yield read_at, 0
            return
        try:
            handle = os.open(path, os.O_RDONLY)
            try:
                data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            raise InputError(path, f"cannot be read ({error})") from None
        with data:
            yield lambda offset, size: data[offset : offset + size], len(data)
