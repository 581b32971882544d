"""What is done to an archive to make a mutant. Each operation returns what it did."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from .archives import Source
from .containers import CRLF
from .mutant import Mutant, Span

Operation = Callable[[Mutant, random.Random], str]

_SECTOR = (512, 4096)
_GARBAGE = (
    bytes(512),
    bytes(7),
    b"\r\n",
    b"\n",
    CRLF,
    b"\x1f\x8b\x08",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0",
    b"\x28\xb5\x2f\xfd",
    b"\x50\x2a\x4d\x18\x04\0\0\0abcd",
    b"\x50\x2a\x4d\x18\xff\xff\0\0abcd",
    b"WARC/1.0\r\n",
    b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 100000\r\n\r\n",
    b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n",
    b"http://example.com/ 1.2.3.4 20200101000000 text/html 12\n",
    b"<html>garbage</html>\r\n",
)


def offset(mutant: Mutant, rng: random.Random) -> int:
    """Any offset; often one at or near a border between records."""
    size = mutant.size()
    if rng.random() < 0.5:
        edge = rng.choice(mutant.source.edges())
        return max(0, min(size, edge + rng.choice((0, 0, 0, -1, 1, -4, 4, rng.randrange(-40, 41)))))
    return rng.randrange(size + 1)


def a_range(mutant: Mutant, rng: random.Random) -> tuple[int, int]:
    begin, end = sorted((offset(mutant, rng), offset(mutant, rng)))
    return begin, end


def cut(mutant: Mutant, rng: random.Random) -> str:
    at = offset(mutant, rng)
    mutant.replace(at, mutant.size(), [])
    return f"cut at {at}"


def behead(mutant: Mutant, rng: random.Random) -> str:
    at = offset(mutant, rng)
    mutant.replace(0, at, [])
    return f"first {at} bytes removed"


def flip(mutant: Mutant, rng: random.Random) -> str:
    offsets = []
    for _ in range(rng.choice((1, 1, 1, 2, 8)) if mutant.size() else 0):
        at = min(offset(mutant, rng), mutant.size() - 1)
        byte = mutant.data(mutant.cut_out(at, at + 1))[0] ^ (1 << rng.randrange(8))
        mutant.replace(at, at + 1, [bytes((byte,))])
        offsets.append(at)
    return f"bits flipped at {offsets}"


def delete(mutant: Mutant, rng: random.Random) -> str:
    begin, end = a_range(mutant, rng)
    mutant.replace(begin, end, [])
    return f"{begin}-{end} removed"


def insert(mutant: Mutant, rng: random.Random) -> str:
    at = offset(mutant, rng)
    new = rng.choice((rng.choice(_GARBAGE), rng.randbytes(rng.choice((1, 3, 10, 500, 5000)))))
    mutant.replace(at, at, [new])
    return f"{new[:20]!r} ({len(new)}) inserted at {at}"


def zero(mutant: Mutant, rng: random.Random) -> str:
    """Sectors of NULs, as a disk or a file system leaves them."""
    sector = rng.choice(_SECTOR)
    begin = min(rng.randrange(max(1, mutant.size() // sector + 1)) * sector, mutant.size())
    end = min(begin + sector * rng.choice((1, 1, 2, 5)), mutant.size())
    mutant.replace(begin, end, [bytes(end - begin)])
    return f"{begin}-{end} zeroed"


def zeros_between(mutant: Mutant, rng: random.Random) -> str:
    at = offset(mutant, rng)
    mutant.replace(at, at, [bytes(4096 * rng.choice((1, 2, 8)))])
    return f"blocks of NULs inserted at {at}"


def copy(mutant: Mutant, rng: random.Random) -> str:
    begin, end = a_range(mutant, rng)
    at = offset(mutant, rng)
    mutant.replace(at, at, mutant.cut_out(begin, end))
    return f"{begin}-{end} copied to {at}"


def shuffle(mutant: Mutant, rng: random.Random) -> str:
    """Records duplicated, removed, in another order."""
    source, edges = mutant.source, mutant.source.edges()
    first = 1 if source.dictionary or source.kind.startswith("arc") else 0
    order = [part for part in range(first, len(source.parts)) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    rng.shuffle(order)
    mutant.pieces = [Span(mutant.number, edges[part], edges[part + 1]) for part in [*range(first), *order]]
    return f"records in the order {order[:20]}"


def splice(mutant: Mutant, rng: random.Random) -> str:
    """The start of this file and the end of another one of the same kind, or of any kind."""
    kind = mutant.source.kind
    same = [number for number, source in enumerate(mutant.sources) if source.kind == kind]
    number = rng.choice(same) if rng.random() < 0.8 else rng.randrange(len(mutant.sources))
    other = Mutant(mutant.sources, number)
    at, begin = offset(mutant, rng), offset(other, rng)
    mutant.pieces = mutant.cut_out(0, at) + other.cut_out(begin, other.size())
    return f"{other.source.name} ({other.source.kind}) from {begin} on follows at {at}"


def border(mutant: Mutant, rng: random.Random) -> str:
    """Two members that are not cut where the records are."""
    source, edges = mutant.source, mutant.source.edges()
    parts = [part for part in range(len(source.parts) - 1) if source.records[part]]
    if not parts or source.kind in ("plain", "arc"):
        return shuffle(mutant, rng)
    part = rng.choice(parts)
    both, step = (
        source.records[part] + source.records[part + 1],
        rng.choice((-4, -1, 1, 2, 10, rng.randrange(-300, 300))),
    )
    at = max(0, min(len(both), len(source.records[part]) + step))
    new = [source.pack(text, rng.choice((0, 1, 6, 9))) for text in (both[:at], both[at:]) if text]
    mutant.pieces = [
        Span(mutant.number, 0, edges[part]),
        *new,
        Span(mutant.number, edges[part + 2], edges[-1]),
    ]
    mutant.is_repacked = True
    return f"border after record {part} moved to {at} of {len(both)}"


def join(mutant: Mutant, rng: random.Random) -> str:
    """Two records in one member; the first one may break off."""
    source, edges = mutant.source, mutant.source.edges()
    parts = [part for part in range(len(source.parts) - 1) if source.records[part]]
    if not parts:
        return shuffle(mutant, rng)
    part = rng.choice(parts)
    size = rng.choice(
        (
            len(source.records[part]),
            rng.randrange(len(source.records[part]) + 1),
            _in_header(mutant, part, rng),
        )
    )
    new = source.pack(source.records[part][:size] + source.records[part + 1])
    mutant.pieces = [
        Span(mutant.number, 0, edges[part]),
        new,
        Span(mutant.number, edges[part + 2], edges[-1]),
    ]
    mutant.is_repacked = True
    return f"{size} bytes of record {part} joined with the next record"


def divide(mutant: Mutant, rng: random.Random) -> str:
    """One record in several members."""
    source, edges = mutant.source, mutant.source.edges()
    parts = [part for part in range(len(source.parts)) if source.records[part]]
    if source.kind in ("plain", "arc"):
        return shuffle(mutant, rng)
    part = rng.choice(parts)
    text = source.records[part]
    step = max(rng.choice((1, 100, 1000, 4096, 65280)), len(text) // 50)
    new = [source.pack(text[at : at + step]) for at in range(0, len(text), step)]
    mutant.pieces = [
        Span(mutant.number, 0, edges[part]),
        *new,
        Span(mutant.number, edges[part + 1], edges[-1]),
    ]
    mutant.is_repacked = True
    return f"record {part} in {len(new)} members"


def _in_header(mutant: Mutant, part: int, rng: random.Random) -> int:
    """A position inside the header of a record."""
    content = mutant.source.records[part]
    end = content.find(CRLF) + len(CRLF) if content.startswith(b"WARC/") else content.find(b"\n") + 1
    return rng.randrange(1, max(end, 2))


def break_off(mutant: Mutant, rng: random.Random) -> str:
    """A record breaks off, mostly inside its header, and the next one follows."""
    source, edges = mutant.source, mutant.source.edges()
    part = rng.choice([part for part, record in enumerate(source.records) if record])
    in_header = rng.random() < 0.8
    size = _in_header(mutant, part, rng) if in_header else rng.randrange(len(source.records[part]) + 1)
    if source.kind not in ("plain", "arc"):
        mutant.replace_part(part, source.records[part][:size])
        return f"record {part} breaks off after {size} bytes, in a valid member"
    mutant.replace(edges[part] + size, edges[part + 1], [])
    return f"record {part} breaks off after {size} bytes"


def length(mutant: Mutant, rng: random.Random) -> str:
    """A wrong length of one record, or the same one written in another way."""
    source = mutant.source
    part = rng.choice([part for part, record in enumerate(source.records) if record])
    content = source.records[part]
    pattern = rb"(?i)\r?\ncontent-length: *(\d+)" if content.startswith(b"WARC/") else rb" (\d+)\r?\n"
    found = re.search(pattern, content)
    if found is None:
        return shuffle(mutant, rng)
    value = int(found[1])
    steps = (-1, 1, -2, 2, -4, 3, 4, 5, -40, 40, rng.randrange(-value - 1, 9999))
    new = rng.choice(
        [b"%d" % max(0, value + step) for step in steps]
        + [
            b"0",
            b"-1",
            b"",
            b"9" * 20,
            b"1e3",
            b"+%d" % value,
            b"0%d" % value,
            b"%d " % value,
            b"%d;" % value,
        ]
        + [
            b"%d\r\nContent-Length: 7" % value,
            b"7\r\nContent-Length: %d" % value,
            b"%d_0" % value,
            b"\xd9\xa1",
            b" 12 34",
        ]
    )
    mutant.replace_part(part, content[: found.start(1)] + new + content[found.end(1) :])
    return f"record {part}: length {value} becomes {new!r}"


def header_bytes(mutant: Mutant, rng: random.Random) -> str:
    """Bytes of a record's header changed, removed or inserted."""
    part = rng.choice([part for part, record in enumerate(mutant.source.records) if record])
    content, at = bytearray(mutant.source.records[part]), _in_header(mutant, part, rng)
    kind = rng.randrange(3)
    if kind == 0:
        content[at] = rng.randrange(256)
    elif kind == 1:
        del content[at : at + rng.choice((1, 2, 4, 30))]
    else:
        content[at:at] = rng.choice(
            (
                b"\r\n",
                b"\n",
                b"\r",
                b"\0",
                b" ",
                b"\t",
                b"\r\n ",
                b"WARC/1.0\r\n",
                CRLF,
                b"\x1b[31m",
                b"http://",
            )
        )
    mutant.replace_part(part, bytes(content))
    return f"record {part}: header changed ({kind}) at {at}"


def header_lines(mutant: Mutant, rng: random.Random) -> str:
    """Lines of a record's header removed, duplicated, in another order, or with other line ends."""
    part = rng.choice([part for part, record in enumerate(mutant.source.records) if record])
    head, blank, rest = mutant.source.records[part].partition(CRLF)
    if not head.startswith(b"WARC/"):
        return header_bytes(mutant, rng)
    version, *lines = head.split(b"\r\n")
    at, kind = rng.randrange(len(lines)), rng.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines) + 1), lines[at])
    elif kind == 2:
        rng.shuffle(lines)
    end = b"\n" if kind == 3 else b"\r\n"
    mutant.replace_part(part, end.join((version, *lines)) + blank + rest)
    return f"record {part}: header lines changed ({kind}) at {at}"


FIRST: tuple[Operation, ...] = (
    cut, behead, flip, delete, insert, zero, zeros_between, copy, shuffle, splice, border, join, divide,
    break_off, break_off, length, header_bytes, header_lines,
)  # fmt: skip
THEN: tuple[Operation, ...] = (cut, flip, delete, insert, zero, zeros_between, copy)


def make_mutant(sources: list[Source], usable: list[int], rng: random.Random) -> Mutant:
    """A mutant of one of the `usable` sources: one to three operations."""
    mutant = Mutant(sources, rng.choice(usable))
    mutant.what.append(rng.choice(FIRST)(mutant, rng))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        if mutant.size():
            mutant.what.append(rng.choice(THEN)(mutant, rng))
    return mutant
