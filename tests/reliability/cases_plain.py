"""Damage to uncompressed archives, WARC and ARC."""

from __future__ import annotations

from .cases import BAD, Case, Sources, one_file, put, row, swap
from .lengths import LENGTHS

WARC, ARC = "a.warc", "a.arc"
LAST = 5
ARC_BAD = 3
TEXT = b"<html>\nsome text: of lines\n\n</html>\n"


def _cut(sources: Sources, to: int) -> Case:
    """The file is truncated `to` bytes into its last record; a negative number counts from the end of its closing lines."""
    parts = sources.warc.parts()
    hit = [] if to < 0 else [LAST]
    return one_file(WARC, [*parts[:LAST], parts[LAST][:to]], sources.warc, hit)


@row("plain-cut-header")
def plain_cut_header(sources: Sources) -> Case:
    return _cut(sources, 100)


@row("plain-cut-block")
def plain_cut_block(sources: Sources) -> Case:
    return _cut(sources, 1000)


@row("plain-cut-line-ends")
def plain_cut_line_ends(sources: Sources) -> Case:
    return _cut(sources, -3)


@row("plain-cut-twice")
def plain_cut_twice(sources: Sources) -> Case:
    parts = sources.warc.parts()
    return one_file(WARC, swap(parts, parts[BAD][:100] + b"\r\n"), sources.warc, [BAD])


@row("plain-cut-in-line")
def plain_cut_in_line(sources: Sources) -> Case:
    parts = sources.warc.parts()
    return one_file(WARC, swap(parts, parts[BAD][:100]), sources.warc, [BAD])


@row("plain-joined-headers")
def plain_joined_headers(sources: Sources) -> Case:
    """The end of a header, the closing lines of its record and the start of the next header are missing."""
    parts = sources.warc.parts()
    begin = parts[BAD][: parts[BAD].index(b"Content-Type:")]
    rest = parts[BAD + 1].partition(b"\r\n")[2]
    return one_file(WARC, [*parts[:BAD], begin + rest, *parts[BAD + 2 :]], sources.warc, [BAD, BAD + 1])


@row("arc-cut-twice")
def arc_cut_twice(sources: Sources) -> Case:
    parts = sources.arc.parts()
    at = parts[ARC_BAD].index(b" ", parts[ARC_BAD].index(b" ") + 1) + 5
    return one_file(ARC, swap(parts, parts[ARC_BAD][:at], ARC_BAD), sources.arc, [ARC_BAD])


@row("plain-garbage")
def plain_garbage(sources: Sources) -> Case:
    return one_file(WARC, put(sources.warc.parts(), TEXT), sources.warc)


@row("plain-garbage-first")
def plain_garbage_first(sources: Sources) -> Case:
    return one_file(WARC, put(sources.warc.parts(), TEXT, 0), sources.warc)


@row("plain-blank-lines")
def plain_blank_lines(sources: Sources) -> Case:
    return one_file(WARC, put(put(sources.warc.parts(), b"\r\n\n", 0), b"\r\n" * 2000, 4), sources.warc)


@row("plain-nul-padding")
def plain_nul_padding(sources: Sources) -> Case:
    return one_file(WARC, [*sources.warc.parts(), bytes(512)], sources.warc)


@row("arc-cut-header")
def arc_cut_header(sources: Sources) -> Case:
    parts = sources.arc.parts()
    return one_file(ARC, [*parts[:LAST], parts[LAST][:30]], sources.arc, [LAST])


@row("arc-cut-block")
def arc_cut_block(sources: Sources) -> Case:
    parts = sources.arc.parts()
    return one_file(ARC, [*parts[:LAST], parts[LAST][:200]], sources.arc, [LAST])


@row("arc-garbage")
def arc_garbage(sources: Sources) -> Case:
    return one_file(ARC, put(sources.arc.parts(), TEXT), sources.arc, [BAD - 1])


@row("arc-version-2")
def arc_version_2(sources: Sources) -> Case:
    line = b"http://a.org/ 1.2.3.4 20080430204825 text/html 200 - - 0 a.arc 10\n0123456789\n"
    return Case({ARC: line * 3}, [], frozenset())


def _plain_length(change: str) -> None:
    @row(f"plain-length-{change}")
    def build(sources: Sources) -> Case:
        part = LENGTHS[change].in_warc(sources.warc.records[BAD]) + sources.warc.end
        return one_file(WARC, swap(sources.warc.parts(), part), sources.warc, [BAD])


def _arc_length(change: str) -> None:
    @row(f"arc-length-{change}")
    def build(sources: Sources) -> Case:
        part = LENGTHS[change].in_arc(sources.arc.records[ARC_BAD]) + sources.arc.end
        hit = [ARC_BAD - 1, ARC_BAD] if change == "missing" else [ARC_BAD]
        return one_file(ARC, swap(sources.arc.parts(), part, ARC_BAD), sources.arc, hit)


for _change in LENGTHS:
    _plain_length(_change)
    _arc_length(_change)
