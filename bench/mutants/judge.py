"""Indexes a mutant and compares the result with other readers. Returns the findings."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.capture import Record
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import Findings, index_archive
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.window import LOCAL_CHUNK

from .archives import Source
from .containers import DICTIONARY_MAGIC
from .mutant import Mutant, Untouched
from .second_reader import dictionary_of, read_by_both, read_ended, unpacked

SECONDS = 20
"""More is a hang. Usual mutants take a millisecond."""
MEMORY = 400 << 20
_BIG = 100_000
_SKIPPED = re.compile(r"; (\d+) bytes skipped$")
_TO_THE_END = ("dictionary", "truncated", "no WARC or ARC record found", "cannot be indexed")
"""Words in the reasons of damage that reaches to the end of the file."""
_SMALL_CHUNK = 1 << 12
_SPACE = re.compile(r"%20|%0[0BC]|[\s\x00<>]", re.I)


class Line(NamedTuple):
    """An index line: its bytes, and its range in the archive."""

    text: bytes
    offset: int
    length: int

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.text.split(b" ", 2)[2])
        return fields


class Truth(NamedTuple):
    """The sources; which records get a line, by source and part; the SHA-1 of every record's content."""

    sources: list[Source]
    usable: list[int]
    with_line: set[tuple[int, int]]
    contents: set[bytes]


class TooLongError(Exception):
    """Indexing a mutant took too long."""


def _too_long(*_: object) -> None:
    raise TooLongError


def index(data: bytes, chunk: int = LOCAL_CHUNK) -> tuple[list[Line], Findings]:
    """The lines and findings of an archive."""
    indexer = index_archive(
        lambda offset, size: data[offset : offset + size], b"x", CaptureOptions(), "cdxj", chunk
    )
    lines = []
    for text in (text for some in indexer for text in some):
        fields = json.loads(text.split(b" ", 2)[2])
        lines.append(Line(text, int(fields["offset"]), int(fields["length"])))
    return lines, indexer.findings


def truth_of(sources: list[Source]) -> Truth:
    """What the untouched sources give. Raises AssertionError if warcio and FastWARC read more of them."""
    with_line, usable, contents = set(), [], set()
    for number, source in enumerate(sources):
        data = b"".join(source.parts)
        lines, findings = index(data)
        offsets = {line.offset for line in lines}
        with_line |= {(number, part) for part, edge in enumerate(source.edges()) if edge in offsets}
        contents |= {
            hashlib.sha1(text).digest()
            for record in source.records
            for text in (record, record.rstrip(b"\r\n"))
        }
        if findings.damage:
            continue
        usable.append(number)
        missing = (
            set() if source.kind.startswith("zst") else read_by_both(data, "arc" in source.kind) - offsets
        )
        assert not missing, f"{source.name} ({source.kind}) as it is: no lines for {sorted(missing)[:5]}"
    return Truth(sources, usable, with_line, contents)


class Verdict(NamedTuple):
    """`findings` are faults of cdxmill, as (kind, detail); `counts` are known limits and totals."""

    findings: list[tuple[str, str]]
    counts: Counter[str]
    seconds: float


def judge(mutant: Mutant, truth: Truth, compare_readers: bool = False) -> Verdict:
    """Index a mutant and compare."""
    data = mutant.data()
    counts = Counter({"mutants": 1, f"mutants ({mutant.source.kind})": 1})
    before, begin = _memory(reset=len(data) > _BIG), time.perf_counter()
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        lines, findings = index(data)
    except TooLongError:
        return Verdict([("HANG", f"more than {SECONDS} s")], counts, SECONDS)
    except Exception as error:  # every one is a finding
        return Verdict([("TRACEBACK", repr(error))], counts, 0)
    finally:
        signal.alarm(0)
    seconds = time.perf_counter() - begin
    found = [
        *_wrong(mutant, data, lines, findings, truth),
        *_lost(mutant, data, lines, findings, truth, counts),
    ]
    if (more := _memory() - before) > MEMORY:
        found.append(("MEMORY", f"{more >> 20} MiB more"))
    if compare_readers:
        found += _differences(data, lines, findings)
    counts.update({"lines": len(lines), "without damage": not findings.damage})
    return Verdict(found, counts, seconds)


def _wrong(
    mutant: Mutant, data: bytes, lines: Sequence[Line], findings: Findings, truth: Truth
) -> Iterator[tuple[str, str]]:
    """A line whose range is not exactly its record."""
    dictionary = dictionary_of(data)
    is_summed = mutant.source.kind in ("gz", "arc.gz", "zst", "zst-dict") and mutant.kinds() == {
        mutant.source.kind
    }
    known = truth.contents if is_summed and not mutant.is_repacked else None
    is_zst = mutant.source.kind.startswith("zst") and bool(findings.damage)
    noted = {note.offset for note in findings.notes}
    for line in lines:
        piece = data[line.offset : line.offset + line.length]
        content = unpacked(piece, dictionary) if len(piece) == line.length else None
        reason: str | None = "the range does not unpack to its end"
        if content is not None:
            reason = _compare(line, content, known, line.offset in noted)
        if reason is None:
            continue
        # A zstd frame whose flag for the checksum was flipped has none, and so has text before the first frame.
        is_known_limit = is_zst and (piece[:5].upper() == b"WARC/" or not piece[4] & 4)
        yield "unsummed" if is_known_limit else "WRONG", f"line at {line.offset}+{line.length}: {reason}"
        return


def _compare(line: Line, content: bytes, known: set[bytes] | None, is_noted: bool) -> str | None:
    """What is wrong with a line. If a note says that its date is odd, readers take it as they like."""
    seen, fields = read_ended(content), line.fields()
    if seen is None:
        return "warcio reads no single whole record there"
    if not _same_url(fields["url"], seen.url):
        return f"URL {fields['url']!r}, warcio has {seen.url!r}"
    stamp, digits = line.text.split(b" ", 2)[1].decode(), _digits(seen.date)
    if stamp != "-" and not is_noted and not stamp.startswith(digits):
        return f"timestamp {stamp}, warcio has {seen.date}"
    if known is not None and hashlib.sha1(content).digest() not in known:
        return "the content is no record of the sources"
    return None


def _same_url(one: str, other: str) -> bool:
    if one == other or _SPACE.sub("", one) == _SPACE.sub("", other):
        return True
    try:  # warcio reads header values as UTF-8, else as Latin-1
        return _SPACE.sub("", other.encode("latin-1").decode()) == _SPACE.sub("", one)
    except UnicodeError:
        return False


def _digits(date: str) -> str:
    """The 14 digits of a well-formed date; "" for others, which readers take as they like.

    To warcio, digits after a control character are a date of 1900.
    """
    try:
        year = datetime.datetime.fromisoformat(date.removesuffix("Z")).year
    except ValueError:
        return ""
    return re.sub(r"\D", "", date) if date[19:] == "Z" and year > 1900 else ""


def _lost(
    mutant: Mutant, data: bytes, lines: Sequence[Line], findings: Findings, truth: Truth, counts: Counter[str]
) -> Iterator[tuple[str, str]]:
    """An untouched record, or one that both peers read, that has no line and was not reported."""
    offsets = {line.offset for line in lines}
    for record in mutant.untouched():
        if (record.source, record.part) not in truth.with_line or record.offset in offsets:
            continue
        kind = _why_lost(mutant, data, record, lines, findings)
        counts[kind] += 1
        if kind.isupper():
            yield kind, f"record {record.part} of {truth.sources[record.source].name} at {record.offset}"
            break
    if not findings.damage and not mutant.source.kind.startswith("zst"):
        theirs = read_by_both(data, "arc" in mutant.source.kind) - {note.offset for note in findings.notes}
        missing = _without_line({start for start in theirs if not _is_inside(start, lines)}, offsets)
        if missing:
            yield "PEERS", f"both peers read the records at {missing[:5]}"


def _is_inside(start: int, lines: Sequence[Line]) -> bool:
    """Whether a peer lost its way: its record starts within the range of a line, which was found to be exactly a record."""
    return any(line.offset < start < line.offset + line.length for line in lines)


def _without_line(peers: set[int], offsets: set[int]) -> list[int]:
    """The offsets of the peers' records that have no line. To warcio, empty members before a record belong to it."""
    starts = sorted(peers)
    ends = (*starts[1:], float("inf"))
    return [
        start
        for start, end in zip(starts, ends, strict=False)
        if not any(start <= offset < end for offset in offsets)
    ]


def _why_lost(
    mutant: Mutant, data: bytes, record: Untouched, lines: Sequence[Line], findings: Findings
) -> str:
    """LOST or MERGED are faults. Other words are for records that may be lost, or are not."""
    end = record.offset + record.length
    if _is_covered(record.offset, end, findings):
        return "reported"
    source = mutant.sources[record.source]
    if any(line.offset < record.offset and line.offset + line.length == end for line in lines):
        return "read from another offset"
    original = source.records[record.part]
    if any(
        unpacked(data[line.offset : line.offset + line.length], source.dictionary) == original
        for line in lines
    ):
        return "read from another offset"
    if (
        source.kind.startswith("zst")
        and data[:4] not in (b"\x28\xb5\x2f\xfd", DICTIONARY_MAGIC)
        and findings.damage
    ):
        return "start of a zst file damaged"
    if len(mutant.kinds()) > 1:
        return "mixed containers"
    outer = _outer_header(data, record.offset) if source.kind in ("plain", "arc") else None
    if outer is None:
        return "LOST"
    if record.offset >= outer:
        return "swallowed" if findings.damage else "swallowed silently"
    return "merged" if findings.damage or source.kind == "arc" else "MERGED"


def _is_covered(offset: int, end: int, findings: Findings) -> bool:
    """Also if the skipped bytes begin later: a truncated frame before the record may end with bytes like its first ones."""
    for damage in findings.damage:
        skipped = _SKIPPED.search(damage.reason)
        if skipped and offset < damage.offset < end <= damage.offset + int(skipped[1]):
            return True
        if damage.offset <= offset < damage.offset + (int(skipped[1]) if skipped else 1):
            return True
        is_open = skipped is None and any(word in damage.reason for word in _TO_THE_END)
        if is_open and damage.offset <= offset:
            return True
    return False


def _outer_header(data: bytes, at: int) -> int | None:
    """Where the block begins of the record that `at` is inside of."""
    for item in read_records(lambda offset, size: data[offset : offset + size]):
        if isinstance(item, Record) and item.offset < at < item.offset + item.length:
            return item.offset + item.length - item.size
    return None


def _differences(data: bytes, lines: Sequence[Line], findings: Findings) -> Iterator[tuple[str, str]]:
    """The reader without compiled code, and small reads, must give the same."""
    expected = [line.text for line in lines], findings.damage, findings.notes
    compiled = native.read
    for what, chunk, read in (("Python", LOCAL_CHUNK, None), ("small reads", _SMALL_CHUNK, compiled)):
        native.read = read
        try:
            again, others = index(data, chunk)
        finally:
            native.read = compiled
        if ([line.text for line in again], others.damage, others.notes) != expected:
            yield "DIFFERS", what


def _memory(reset: bool = False) -> int:
    """The most bytes of memory since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = os.open("/proc/self/status", os.O_RDONLY)  # a third of the time of Path, twice per mutant
    try:
        found = re.search(rb"VmHWM:\s*(\d+)", os.read(status, 1 << 13))
    finally:
        os.close(status)
    return int(found[1]) << 10 if found else 0
