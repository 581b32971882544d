"""Where archives are that index lines name: a folder, a URL prefix, or a path index as pywb has it."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path

from cdxmill.errors import InputError, UsageError
from cdxmill.stages.records.fetch_record import Archive, FetchedRecord, NoRecord
from cdxmill.storage.choose import exists, is_remote, join, local_path, open_ranges, read_bytes

_LIST = re.compile(r"\.(?:txt|tsv|idx)\Z")
_OPEN = 32
"""Archives that are kept open: index lines side by side are of many."""


class Archives:
    """Finds and reads the archives below `place`; without one, file names are paths or URLs."""

    def __init__(self, place: str | None) -> None:
        """Raises UsageError where `place` cannot be what it is said to be."""
        self._place = place
        self._index: bytes | None = None
        self._open: dict[str, tuple[Archive, ExitStack]] = {}
        if place is None or (is_remote(place) and not _LIST.search(place)):
            return
        path = Path(local_path(place)) if not is_remote(place) else None
        if path is None or path.is_file():
            try:
                self._index = b"\n" + read_bytes(place)
            except InputError as error:
                raise UsageError(str(error)) from None
        elif not path.is_dir():
            raise UsageError(f"{place}: neither a folder of archives nor a path index")

    def places(self, filename: str) -> list[str]:
        """The paths or URLs of an archive, best first; none where a path index has not got it."""
        if is_remote(filename) or filename.startswith("/") or self._place is None:
            return [filename]
        if self._index is None:
            return [join(self._place, filename)]
        name = os.fsencode(filename)
        start = self._index.find(b"\n%b\t" % name)
        if start < 0:
            return []
        end = self._index.find(b"\n", start + 1)
        line = self._index[start : end if end >= 0 else None].rstrip(b"\r")
        return [os.fsdecode(place) for place in line.split(b"\t")[1:] if place]

    def fetch(self, filename: str, offset: int, length: int | None) -> FetchedRecord:
        """The record in that byte range. Raises InputError where it is not there, or is not one."""
        places = self.places(filename)
        if not places:
            raise InputError(filename, f"is not in the path index {self._place}")
        place = next((place for place in places[:-1] if exists(place)), places[-1])
        try:
            return self._archive(place).record(offset, length)
        except NoRecord as error:
            end = "" if length is None else f" of {length} bytes"
            raise InputError(f"{place}@{offset}", f"no record{end}: {error}") from None

    def _archive(self, place: str) -> Archive:
        """Opened at the first question; the one that was not asked for longest is closed for it."""
        archive, stack = self._open.pop(place, (None, ExitStack()))
        if archive is None:
            if len(self._open) >= _OPEN:
                _, oldest = self._open.pop(next(iter(self._open)))
                oldest.close()
            archive = Archive(stack.enter_context(open_ranges(place)))
        self._open[place] = archive, stack
        return archive

    def close(self) -> None:
        """Close all archives."""
        for _, stack in self._open.values():
            stack.close()
        self._open.clear()
