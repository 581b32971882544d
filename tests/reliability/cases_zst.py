"""Damage to Zstandard archives."""

from __future__ import annotations

import zstandard

from .cases import BAD, Case, Sources, flip, one_file, overwrite, put, row, swap
from .lengths import LENGTHS
from .sources import dictionary_frame, zstd_frame

NAME = "a.warc.zst"
LAST = 5


def _swapped(sources: Sources, frame: bytes) -> Case:
    return one_file(NAME, swap(sources.warc.frames(), frame), sources.warc, [BAD])


def _with_dictionary(sources: Sources, frame: bytes) -> Case:
    """An archive whose frames need a dictionary, with that frame at its start."""
    frames = sources.warc.frames(sources.warc.dictionary())
    return one_file(NAME, [frame, *frames], sources.warc, range(6))


@row("zst-cut")
def zst_cut(sources: Sources) -> Case:
    frames = sources.warc.frames()
    return one_file(NAME, [*frames[:LAST], frames[LAST][:200]], sources.warc, [LAST])


@row("zst-flip-data")
def zst_flip_data(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.frames()[BAD], 100))


@row("zst-flip-checksum")
def zst_flip_checksum(sources: Sources) -> Case:
    return _swapped(sources, flip(sources.warc.frames()[BAD], -1))


@row("zst-flip-block-size")
def zst_flip_block_size(sources: Sources) -> Case:
    return _swapped(sources, overwrite(sources.warc.frames()[BAD], 7, b"\xff\xff\xff"))


@row("zst-garbage")
def zst_garbage(sources: Sources) -> Case:
    return one_file(NAME, put(sources.warc.frames(), b"GARBAGE" * 20), sources.warc)


@row("zst-trailing")
def zst_trailing(sources: Sources) -> Case:
    return one_file(NAME, [*sources.warc.frames(), b"GARBAGE" * 20], sources.warc)


@row("zst-two-records")
def zst_two_records(sources: Sources) -> Case:
    parts, frames = sources.warc.parts(), sources.warc.frames()
    both = zstd_frame(parts[BAD] + parts[BAD + 1])
    return one_file(NAME, [*frames[:BAD], both, *frames[BAD + 2 :]], sources.warc, [BAD, BAD + 1])


@row("zst-several-frames")
def zst_several_frames(sources: Sources) -> Case:
    part = sources.warc.parts()[BAD]
    frames = swap(
        sources.warc.frames(), zstd_frame(part[:300]) + zstd_frame(part[300:500]) + zstd_frame(part[500:])
    )
    return one_file(NAME, frames, sources.warc)


@row("zst-skippable")
def zst_skippable(sources: Sources) -> Case:
    frame = b"\x50\x2a\x4d\x18" + (7).to_bytes(4, "little") + b"a note."
    return one_file(NAME, put(sources.warc.frames(), frame), sources.warc)


@row("zst-skippable-length")
def zst_skippable_length(sources: Sources) -> Case:
    frame = b"\x50\x2a\x4d\x18" + (70).to_bytes(4, "little") + b"a note."
    return one_file(NAME, put(sources.warc.frames(), frame), sources.warc)


@row("zst-skippable-swallows")
def zst_skippable_swallows(sources: Sources) -> Case:
    frames = sources.warc.frames()
    frame = b"\x50\x2a\x4d\x18" + sum(map(len, frames[BAD:])).to_bytes(4, "little")
    return one_file(NAME, put(frames, frame), sources.warc, range(BAD, 6))


@row("zst-dictionary-swallows")
def zst_dictionary_swallows(sources: Sources) -> Case:
    dictionary = sources.warc.dictionary()
    case = _with_dictionary(sources, dictionary_frame(dictionary.as_bytes()))
    data = case.files[NAME]
    return case._replace(files={NAME: overwrite(data, 4, (len(data) - 8).to_bytes(4, "little"))})


@row("zst-dictionary-swallows-one")
def zst_dictionary_swallows_one(sources: Sources) -> Case:
    dictionary = sources.warc.dictionary()
    first = sources.warc.frames(dictionary)[0]
    case = _with_dictionary(sources, dictionary_frame(dictionary.as_bytes()))
    length = len(dictionary.as_bytes()) + len(first)
    return case._replace(files={NAME: overwrite(case.files[NAME], 4, length.to_bytes(4, "little"))})


@row("zst-dictionary")
def zst_dictionary(sources: Sources) -> Case:
    dictionary = sources.warc.dictionary()
    case = _with_dictionary(sources, dictionary_frame(dictionary.as_bytes()))
    return case._replace(hit=frozenset(), dictionary=dictionary)


@row("zst-dictionary-packed")
def zst_dictionary_packed(sources: Sources) -> Case:
    dictionary = sources.warc.dictionary()
    case = _with_dictionary(sources, dictionary_frame(zstd_frame(dictionary.as_bytes())))
    return case._replace(hit=frozenset(), dictionary=dictionary)


@row("zst-dictionary-damaged")
def zst_dictionary_damaged(sources: Sources) -> Case:
    content = overwrite(sources.warc.dictionary().as_bytes(), 8, b"\xff" * 20)
    return _with_dictionary(sources, dictionary_frame(content))


@row("zst-dictionary-packed-damaged")
def zst_dictionary_packed_damaged(sources: Sources) -> Case:
    frame = zstd_frame(sources.warc.dictionary().as_bytes())
    return _with_dictionary(sources, dictionary_frame(flip(frame, -1)))


@row("zst-dictionary-cut")
def zst_dictionary_cut(sources: Sources) -> Case:
    frame = dictionary_frame(sources.warc.dictionary().as_bytes())
    return Case({NAME: frame[:1000]}, sources.warc.names(), frozenset(range(6)))


@row("zst-dictionary-lost")
def zst_dictionary_lost(sources: Sources) -> Case:
    return _with_dictionary(sources, b"")


@row("zst-dictionary-other")
def zst_dictionary_other(sources: Sources) -> Case:
    content = overwrite(sources.warc.dictionary().as_bytes(), 4, (40000).to_bytes(4, "little"))
    return _with_dictionary(sources, dictionary_frame(content))


@row("zst-window")
def zst_window(sources: Sources) -> Case:
    settings = zstandard.ZstdCompressionParameters.from_level(1, window_log=28, hash_log=10, chain_log=10)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    return _swapped(sources, packer.compress(sources.warc.parts()[BAD]) + packer.flush())


@row("zst-huge")
def zst_huge(sources: Sources) -> Case:
    frame = sources.warc.frames()[BAD]
    content = 5 + (1, 2, 4, 8)[frame[4] >> 6]
    claim = bytes((frame[4] | 0xC0,)) + (1 << 40).to_bytes(8, "little")
    return _swapped(sources, frame[:4] + claim + frame[content:])


@row("zst-garbage-behind-dictionary")
def zst_garbage_behind_dictionary(sources: Sources) -> Case:
    dictionary = sources.warc.dictionary()
    case = _with_dictionary(sources, dictionary_frame(dictionary.as_bytes()) + b"GARBAGE")
    return case._replace(hit=frozenset(), dictionary=dictionary)


def _zst_length(change: str) -> None:
    @row(f"zst-length-{change}")
    def build(sources: Sources) -> Case:
        content = LENGTHS[change].in_warc(sources.warc.records[BAD]) + sources.warc.end
        return _swapped(sources, zstd_frame(content))


for _change in LENGTHS:
    _zst_length(_change)
