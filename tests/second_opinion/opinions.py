"""The answers of both peers for the archives. If a peer fails on an archive, it is asked again record by record."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .archives import Archive
from .ours import Ours
from .peers import Row

PEERS = ("pywb", "cdxj")
LOST = "Record not followed by newline"
"""warcio's warning that it has lost its position. What the peers print after it may be garbage."""


class Opinion(NamedTuple):
    """The answer of one peer for one archive: its rows by offset, and the offsets of records it cannot read."""

    rows: dict[int, Row]
    unknown: set[int]
    stumbles: bool
    last: int

    def covers(self, offset: int) -> bool:
        """Whether the peer's run over the whole file is reliable at this offset."""
        return not self.stumbles or offset <= self.last

    def hear(self, offset: int, answer: dict[str, Any]) -> None:
        """Replace the answer for a record by the answer for that record alone."""
        self.rows.pop(offset, None)
        for row in answer["rows"][:1]:
            self.rows[offset] = {**row, "offset": str(offset)}
        if answer["error"] and not answer["rows"]:
            self.unknown.add(offset)


Opinions = dict[str, Opinion]


def ask_peers(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The answers of both peers by path, from a separate process."""
    script = Path(__file__).with_name("peers.py")
    names = "".join(f"{path}\n" for path in paths)
    run = subprocess.run([sys.executable, script], input=names, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return {answer["path"]: answer for answer in answers}


def gather(archives: list[Archive], ours: dict[str, Ours], directory: Path) -> dict[str, Opinions]:
    """The peers' opinions by the name of the archive. `folder` gets the records that are read alone."""
    whole = ask_peers(archive.path for archive in archives)
    opinions = {
        archive.name: {peer: _opinion(whole[str(archive.path)][peer]) for peer in PEERS}
        for archive in archives
    }
    doubts = [
        (archive, offset, int(row["length"]))
        for archive in archives
        for offset, row in ours[archive.name].rows.items()
        if not all(opinion.covers(offset) for opinion in opinions[archive.name].values())
    ]
    slices = [directory / f"{number:05d}.warc" for number in range(len(doubts))]
    for path, (archive, offset, length) in zip(slices, doubts, strict=True):
        path.write_bytes(cut(archive.path, offset, length))
    alone = ask_peers(slices)
    for path, (archive, offset, _) in zip(slices, doubts, strict=True):
        for peer, opinion in opinions[archive.name].items():
            opinion.hear(offset, alone[str(path)][peer])
    return opinions


def _opinion(answer: dict[str, Any]) -> Opinion:
    rows = {int(row["offset"]): row for row in answer["rows"]}
    lost = LOST in answer["stderr"]
    return Opinion(rows, set(), lost or bool(answer["error"]), -1 if lost else max(rows, default=-1))


def cut(path: Path, offset: int, length: int) -> bytes:
    """A range of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
