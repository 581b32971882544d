"""Archives with several records per member or frame, of which some are damaged before they are compressed.

What `recompress` carries has to be exactly the records that are whole, and what it reports has to name the others with
their bytes. The records are those of `archives`, which cdxmill did not split.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cdxmill.capture import Damage
from cdxmill.stages.records.read_contents import Content, read_contents
from cdxmill.storage.scratch import Scratch

from .archives import Source

_LENGTH = re.compile(rb"(?<=\r\nContent-Length: )\d+(?=\r\n)", re.I)
_SKIPPED = re.compile(r"(\d+) bytes skipped, at byte (\d+) of the decompressed content$")
_BLANK = b"\r\n"


def _with_length(change: Callable[[int], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: _LENGTH.sub(lambda match: change(int(match[0])), data, count=1)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no length": lambda data: _LENGTH.sub(b"", data, count=1),
    "invalid length": _with_length(lambda size: b"%d bytes" % size),
    "enormous length": _with_length(lambda _: b"9" * 30),
    "too short": _with_length(lambda size: b"%d" % (size // 2)),
    "too long": _with_length(lambda size: b"%d" % (size + 150)),
    "longer than all": _with_length(lambda size: b"%d" % (size + (1 << 30))),
    "version": lambda data: data.replace(b"WARC/1.", b"WARC/7.", 1),
    "start": lambda data: b"GARBAGE" + data[7:],
}


class Grouped(NamedTuple):
    """An archive, the records of it that are whole, the damaged ones as (unit, begin, end), and what was done."""

    data: bytes
    whole: list[bytes]
    damaged: list[tuple[int, int, int]]
    what: str


def make_grouped(sources: list[Source], rng: random.Random) -> Grouped:
    """Groups of records of a source with one to three damaged ones, often the first of a group."""
    source = rng.choice(sources)
    kept = [record for record in source.records if record]
    units, whole, damaged, what = list[bytes](), list[bytes](), list[tuple[int, int, int]](), list[str]()
    pos = 0 if source.dictionary is None else len(source.parts[0])
    while kept:
        size = rng.randrange(2, 12)
        group, kept = kept[:size], kept[size:]
        bad = {0 if rng.random() < 0.5 else rng.randrange(len(group))} if rng.random() < 0.5 else set[int]()
        content = b""
        for number, record in enumerate(group):
            kind = rng.choice(list(DAMAGES))
            changed = DAMAGES[kind](record) if number in bad and len(group) > 1 else record
            if changed == record:
                whole.append(record)
            else:
                damaged.append((pos, len(content), len(content) + len(changed)))
                what.append(f"{kind} of {number} in {pos}")
            content += changed
        units.append(source.pack(content))
        pos += len(units[-1])
    head = b"" if source.dictionary is None else source.parts[0]
    return Grouped(head + b"".join(units), whole, damaged, f"{source.kind} {source.name}: {'; '.join(what)}")


def faults_of(made: Grouped) -> Iterator[str]:
    """Records that were lost or invented, and damage that was not reported with its bytes."""
    with tempfile.TemporaryDirectory() as directory:
        items = list(read_contents(lambda pos, size: made.data[pos : pos + size], Scratch(Path(directory))))
    carried = [bytes(one.data or b"").strip(_BLANK) for one in items if isinstance(one, Content)]
    whole = [record.strip(_BLANK) for record in made.whole]
    if carried != whole:
        lost, new = len(set(whole) - set(carried)), len(set(carried) - set(whole))
        yield f"{made.what}: {len(whole)} whole records, {len(carried)} carried; {lost} lost, {new} invented"
    reported = [one for one in items if isinstance(one, Damage)]
    for unit, begin, end in made.damaged:
        if not any(_covers(one, unit, begin, end) for one in reported):
            yield f"{made.what}: {unit}, {begin}-{end} is not reported: {reported}"


def _covers(damage: Damage, unit: int, begin: int, end: int) -> bool:
    """Whether a damage names these bytes. Units that follow each other are taken apart together."""
    skipped = _SKIPPED.search(damage.reason)
    return skipped is not None and damage.offset <= unit and int(skipped[1]) >= end - begin - 2 * len(_BLANK)


def run_grouped(sources: list[Source], seed: int, numbers: range) -> list[str]:
    """The faults of the archives with these numbers."""
    usable = [
        one
        for one in sources
        if one.kind in ("gz", "zst", "zst-dict")
        and len(one.records) > 2
        and all(b"\r\nContent-L" in r for r in one.records if r)
    ]
    found = list[str]()
    for number in numbers:
        found += faults_of(make_grouped(usable, random.Random(f"{seed}/{number}")))
    return found
