"""What was compiled of `cdxmill/native`, where that could be done; whoever uses it can do without it."""

from __future__ import annotations

SOURCES = 2451704666
"""CRC-32 of cdxmill/native, one file behind the other: what was compiled from others is not used. A test holds it."""

try:
    from cdxmill.stages import _native
except (ImportError, AttributeError):  # no compiler was there, or this is a node of a cluster
    _IS_USABLE = False
else:
    _IS_USABLE = _native.sources == SOURCES

read = _native.read if _IS_USABLE else None
Merger = _native.Merger if _IS_USABLE else None
