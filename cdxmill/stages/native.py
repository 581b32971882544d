"""The compiled part of cdxmill. All names are None where it was not compiled; all callers work without it."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

try:
    if sys.version_info < (3, 11):  # noqa: UP036 - a node of a cluster; the module uses the stable ABI of 3.11
        raise ImportError
    from cdxmill.stages import _native
except (ImportError, AttributeError):  # it was not compiled: no compiler, or a node of a cluster
    _IS_USABLE = False
else:
    _IS_USABLE = True

_SOURCES = Path(__file__).parents[1] / "native"


def _stamp(sources: Path) -> int | None:
    """CRC-32 of the files of `sources`, as setup.py writes it into the module. None if they are not installed."""
    if not sources.is_dir():
        return None
    return zlib.crc32(b"".join([path.read_bytes() for path in sorted(sources.glob("*.[ch]"))]))


if _IS_USABLE and (stamp := _stamp(_SOURCES)) is not None:
    # In a checkout, the sources may have changed since the module was compiled.
    _IS_USABLE = _native.sources == stamp

read = _native.read if _IS_USABLE else None
count = _native.count if _IS_USABLE else None
Merger = _native.Merger if _IS_USABLE else None
Tally = _native.Tally if _IS_USABLE else None
CaptureSums = _native.CaptureSums if _IS_USABLE else None
odd_line = _native.odd_line if _IS_USABLE else None
lines_in_order = _native.lines_in_order if _IS_USABLE else None
head = _native.head if _IS_USABLE else None
frame_within = _native.frame_within if _IS_USABLE else None
capture_columns = _native.capture_columns if _IS_USABLE else None
capture_items = _native.capture_items if _IS_USABLE else None
outline_block = _native.outline_block if _IS_USABLE else None
pointer_rows = _native.pointer_rows if _IS_USABLE else None
elements_in = _native.elements_in if _IS_USABLE else None
plain_links = _native.plain_links if _IS_USABLE else None
parsed_size = _native.parsed_size if _IS_USABLE else None
outline = _native.outline if _IS_USABLE else None
