"""Damage to gzip archives: to members, and to the records in them."""

from __future__ import annotations

import zlib

from .cases import BAD, Case, Sources, flip, one_file, overwrite, put, row, swap
from .lengths import LENGTHS
from .sources import gzip_member

NAME = "a.warc.gz"
GARBAGE = b"\x8bGARBAGE\x1f\x08" * 30
LAST = 5


def _cut(sources: Sources, member_bytes: int) -> Case:
    """The file is truncated `member_bytes` bytes into its last member; a negative number counts from its end."""
    members = sources.warc.members()
    return one_file(NAME, [*members[:LAST], members[LAST][:member_bytes]], sources.warc, [LAST])


def _swapped(sources: Sources, member: bytes) -> Case:
    return one_file(NAME, swap(sources.warc.members(), member), sources.warc, [BAD])


def _with_content(sources: Sources, content: bytes) -> Case:
    return _swapped(sources, gzip_member(content))


@row("gz-cut-header")
def gz_cut_header(sources: Sources) -> Case:
    return _cut(sources, 7)


@row("gz-cut-body")
def gz_cut_body(sources: Sources) -> Case:
    return _cut(sources, 200)


@row("gz-cut-trailer")
def gz_cut_trailer(sources: Sources) -> Case:
    return _cut(sources, -5)


@row("gz-one-member")
def gz_one_member(sources: Sources) -> Case:
    return one_file(NAME, [gzip_member(b"".join(sources.warc.parts()))], sources.warc, range(6))


@row("gz-blocks")
def gz_blocks(sources: Sources) -> Case:
    content = b"".join(sources.warc.parts())
    blocks = [gzip_member(content[pos : pos + 500]) for pos in range(0, len(content), 500)]
    return one_file(NAME, blocks, sources.warc, range(6))


@row("gz-two-records")
def gz_two_records(sources: Sources) -> Case:
    parts, members = sources.warc.parts(), sources.warc.members()
    both = gzip_member(parts[BAD] + parts[BAD + 1])
    return one_file(NAME, [*members[:BAD], both, *members[BAD + 2 :]], sources.warc, [BAD, BAD + 1])


@row("gz-split-record")
def gz_split_record(sources: Sources) -> Case:
    part = sources.warc.parts()[BAD]
    return _swapped(sources, gzip_member(part[:600]) + gzip_member(part[600:]))


@row("gz-member-of-garbage")
def gz_member_of_garbage(sources: Sources) -> Case:
    return one_file(NAME, put(sources.warc.members(), gzip_member(b"<html>\n" * 50)), sources.warc)


@row("gz-garbage")
def gz_garbage(sources: Sources) -> Case:
    return one_file(NAME, put(sources.warc.members(), GARBAGE), sources.warc)


@row("gz-garbage-first")
def gz_garbage_first(sources: Sources) -> Case:
    return one_file(NAME, put(sources.warc.members(), b"HTTP/1.1 200 OK\r\n\r\n", 0), sources.warc)


@row("gz-tail-twice")
def gz_tail_twice(sources: Sources) -> Case:
    members = sources.warc.members()
    return one_file(NAME, put(members, members[BAD - 1][-20:]), sources.warc)


@row("gz-nul-padding")
def gz_nul_padding(sources: Sources) -> Case:
    return one_file(NAME, [*sources.warc.members(), bytes(512)], sources.warc)


@row("gz-flip-magic")
def gz_flip_magic(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.members()[BAD], 0))


@row("gz-flip-reserved")
def gz_flip_reserved(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.members()[BAD], 3, bit=6))


@row("gz-flip-header-checksum")
def gz_flip_header_checksum(sources: Sources) -> Case:
    member = sources.warc.members()[BAD]
    header = overwrite(member[:10], 3, b"\x02")
    checksum = (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    return _swapped(sources, header + flip(checksum, 1) + member[10:])


@row("gz-endless-header")
def gz_endless_header(sources: Sources) -> Case:
    header = overwrite(sources.warc.members()[BAD][:10], 3, b"\x08")
    return _swapped(sources, header + b"a" * 200_000)


@row("gz-flip-data")
def gz_flip_data(sources: Sources) -> Case:
    return _swapped(sources, overwrite(sources.warc.members()[BAD], 10, b"\xff" * 20))


@row("gz-flip-crc")
def gz_flip_crc(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.members()[BAD], -8))


@row("gz-flip-size")
def gz_flip_size(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.members()[BAD], -4))


@row("gz-empty-members")
def gz_empty_members(sources: Sources) -> Case:
    members = put(sources.warc.members(), gzip_member(b""))
    return one_file(NAME, [gzip_member(b""), *members, gzip_member(b"\r\n\r\n")], sources.warc)


@row("gz-blank-lines-first")
def gz_blank_lines_first(sources: Sources) -> Case:
    return _with_content(sources, b"\r\n" + sources.warc.parts()[BAD])


@row("gz-endless-record-header")
def gz_endless_record_header(sources: Sources) -> Case:
    return _with_content(sources, sources.warc.records[BAD].replace(b"\r\n\r\n", b"\r\n"))


@row("gz-unknown-version")
def gz_unknown_version(sources: Sources) -> Case:
    return _with_content(sources, sources.warc.parts()[BAD].replace(b"WARC/1.0", b"WARC/3.0"))


def _gz_warc_length(change: str) -> None:
    @row(f"gz-length-{change}")
    def build(sources: Sources) -> Case:
        return _with_content(sources, LENGTHS[change].in_warc(sources.warc.records[BAD]) + sources.warc.end)


def _gz_arc_length(change: str) -> None:
    @row(f"gz-arc-length-{change}")
    def build(sources: Sources) -> Case:
        content = LENGTHS[change].in_arc(sources.arc.records[3]) + sources.arc.end
        return one_file("a.arc.gz", swap(sources.arc.members(), gzip_member(content), 3), sources.arc, [3])


for _change in LENGTHS:
    _gz_warc_length(_change)
    _gz_arc_length(_change)
