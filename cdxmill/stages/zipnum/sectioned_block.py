"""A whole block with sections, each inflated alone: what a search reads is proven to be the text of the gzip member."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

from cdxmill.formats.clusters.sections import (
    FLUSHED,
    HEAD,
    TRAILER,
    Sections,
    format_trailer,
    header_bytes,
    parse_sections,
    section_keys,
)
from cdxmill.formats.clusters.zipnum import MAX_BLOCK, key_of
from cdxmill.stages.window import MemberError, Window, inflating_library


class SectionedBlock(NamedTuple):
    """The text of a block, the offset after the block, and where its sections begin in the text."""

    text: bytes | bytearray
    end: int
    starts: list[int]


def read_sectioned(window: Window, pos: int) -> SectionedBlock | None:
    """The block at `pos`; None if it has no table of sections, or if its bytes are not all there.

    Raises MemberError if the sections, inflated one by one, are not the text of the member, or their keys are wrong.
    """
    head = window.get(pos, HEAD)
    head = window.get(pos, max(len(head), header_bytes(head)))
    try:
        sections = parse_sections(head)
    except ValueError as error:
        raise MemberError(str(error), pos) from None
    if sections is None or sections.starts[-1] > MAX_BLOCK:
        return None
    data = window.get(pos, sections.starts[-1] + TRAILER)
    if len(data) < sections.starts[-1] + TRAILER:
        return None
    texts: list[bytes] = []
    for number in range(len(sections.keys)):
        texts.append(_section_text(data, sections, number, pos, MAX_BLOCK - sum(map(len, texts))))
    text, starts = b"".join(texts), [0, *accumulate(map(len, texts[:-1]))]
    if data[-TRAILER:] != format_trailer(inflating_library()[0].crc32(text), len(text)):
        raise MemberError(
            "its sections are not the text of its gzip member (CRC32 mismatch)", pos + len(data)
        )
    _check_keys(text, starts, sections, pos)
    return SectionedBlock(text, pos + len(data), starts)


def _section_text(data: bytes, sections: Sections, number: int, pos: int, most: int) -> bytes:
    """The text of a section of the block at `pos`, which has at most `most` bytes."""
    start, stop = sections.starts[number : number + 2]
    section = data[start:stop]
    library, library_error = inflating_library()
    if library.crc32(section) != sections.checksums[number]:
        raise MemberError(f"the CRC32 of its section {number + 1} does not match", pos + start)
    is_last = number + 1 == len(sections.keys)
    inflater = library.decompressobj(wbits=-15)
    try:
        text: bytes = inflater.decompress(section, most + 1)
    except library_error as error:
        raise MemberError(f"its section {number + 1} is corrupt ({error})", pos + start) from None
    if len(text) > most:
        raise MemberError(f"it has more than {MAX_BLOCK >> 30} GiB, which readers refuse", pos + start)
    ends = inflater.eof if is_last else section.endswith(FLUSHED) and not inflater.eof
    if not ends or inflater.unused_data:
        raise MemberError(f"its section {number + 1} does not end where its table says", pos + start)
    return text


def _check_keys(text: bytes, starts: list[int], sections: Sections, pos: int) -> None:
    for start, end in pairwise((*starts, len(text))):
        if start and (start >= end or text[start - 1 : start] != b"\n"):
            raise MemberError("a section does not begin with a line", pos)
    if section_keys(text, starts, key_of(text[: text.index(b"\n")])) != sections.keys:
        raise MemberError("the keys of its sections are not those of its lines", pos)
