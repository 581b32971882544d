"""What was skipped in directories, by kind."""

from __future__ import annotations

import posixpath
import re
from collections import Counter

from cdxmill.formats.own_records import is_own_record
from cdxmill.running.quantities import count

SHARD = "shard of a cluster"
_SHARD = re.compile(r"cdx-\d{5,}\.gz")
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst|lz4|zip|z|open|tmp|bad)", re.I)
_ENDING = re.compile(r"\.\w{1,12}", re.ASCII)
_SHOWN = 12
"""Kinds that are listed; the others are summed up."""


class Skipped:
    """The number of skipped files of each kind, and the directories that have them."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._directories: dict[str, None] = {}

    @property
    def directories(self) -> list[str]:
        """The directories that were named, in order."""
        return list(self._directories)

    def add(self, directory: str, kind: str) -> None:
        """Count an entry of a kind."""
        self._kinds[kind] += 1
        self._directories[directory] = None

    def add_file(self, directory: str, path: str) -> None:
        """Count a file by the ending of its name. The records that `index` keeps beside its outputs are no inputs."""
        if not is_own_record(path):
            self.add(directory, kind_of(path))

    def __bool__(self) -> bool:
        """Whether anything was skipped."""
        return bool(self._kinds)

    def __str__(self) -> str:
        """Return `5 files skipped: 3 .har, 2 .txt`."""
        kinds = sorted(self._kinds.items(), key=lambda item: (-item[1], item[0]))
        shown = [f"{number} {kind}" for kind, number in kinds[:_SHOWN]]
        rest = sum(number for _, number in kinds[_SHOWN:])
        if rest:
            shown.append(f"{rest} of {count(len(kinds) - _SHOWN, 'other kind')}")
        return f"{count(self._kinds.total(), 'file')} skipped: {', '.join(shown)}"


def kind_of(path: str) -> str:
    """The kind of a file that is skipped.

    >>> [kind_of(name) for name in ("a.har", "x/a.b.warc.bz2", "README", ".x", "cdx-00000.gz", "a.TXT")]
    ['.har', '.warc.bz2', 'without ending', 'without ending', 'shard of a cluster', '.txt']
    """
    name = posixpath.basename(path)
    if _SHARD.fullmatch(name):
        return SHARD
    stem, ending = posixpath.splitext(name)
    if _PACKED.fullmatch(ending):
        ending = posixpath.splitext(stem)[1] + ending
    steps = ending.split(".")[1:]
    known = bool(steps) and all(_ENDING.fullmatch(f".{step}") for step in steps)
    return ending.lower() if known else "without ending"
