"""What is known of archives, found by the file names of index lines."""

from __future__ import annotations

import posixpath
from typing import Generic, TypeVar

from cdxmill.formats.lines.cdx_lines import safe

Value = TypeVar("Value")


class ArchiveNames(Generic[Value]):
    """Values by the name of an archive: the whole name, or, if no archive has it, the base name.

    Several archives may have one base name. Then no value is the right one.
    """

    def __init__(self) -> None:
        self._whole: dict[bytes, list[Value]] = {}
        self._base: dict[bytes, list[Value]] = {}

    def add(self, name: bytes, value: Value) -> None:
        """Add the value of the archive with this name."""
        for spelling in _spellings(name):
            for names, key in ((self._whole, spelling), (self._base, posixpath.basename(spelling))):
                values = names.setdefault(key, [])
                if value not in values:
                    values.append(value)

    def whole(self, name: bytes) -> list[Value]:
        """The values of the archives with this whole name."""
        return self._whole.get(name, [])

    def find(self, name: bytes) -> list[Value]:
        """The values of the archives that a line may mean by `name`."""
        return self._whole.get(name) or self._base.get(posixpath.basename(name), [])


def _spellings(filename: bytes) -> set[bytes]:
    """As CDXJ and CDX lines may have it: JSON has no bytes that are not UTF-8, and CDX no spaces."""
    return {filename, filename.decode("utf-8", "replace").encode(), safe(filename)}
