"""What is packed decompresses to the same bytes, or the run stops; a dictionary is written where it pays."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from random import Random

import pytest
import zstandard

from cdxmill.capture import Damage
from cdxmill.errors import StoppedError
from cdxmill.stages.records import pack_contents
from cdxmill.stages.records.pack_contents import (
    GzipPacker,
    Packed,
    Packer,
    ZstPacker,
    choose_packer,
    packed_size,
    write_contents,
)
from cdxmill.stages.records.read_contents import Content

DAMAGE = Damage(5, "corrupt")
NOISE = Random(2).randbytes(3000)


def trained() -> bytes:
    samples: list[bytes | bytearray | memoryview] = [
        b"<p>page %d of %d" % (n, n * n) * 40 for n in range(200)
    ]
    return zstandard.train_dictionary(1 << 10, samples, dict_id=40_000).as_bytes()


DICTIONARY = trained()
PACKERS = {"gz": GzipPacker(6), "zst": ZstPacker(6), "dictionary": ZstPacker(6, DICTIONARY)}


def content(data: bytes, is_held: bool = True, offset: int = 0) -> Content:
    def stream() -> Iterator[bytes]:
        return (data[start : start + 1000] for start in range(0, len(data), 1000))

    return Content(offset, len(data), len(data), data if is_held else None, stream)


def unpacked(data: bytes, packer: str) -> bytes:
    if packer == "gz":
        return gzip.decompress(data)
    held = zstandard.ZstdCompressionDict(DICTIONARY) if packer == "dictionary" else None
    found, inflater = b"", zstandard.ZstdDecompressor(held)
    while data:
        one = inflater.decompressobj()
        found += one.decompress(data)
        data = one.unused_data
    return found


@pytest.mark.parametrize("name", PACKERS)
def test_contents_are_written_one_after_the_other(name: str) -> None:
    parts = [b"a" * 999, NOISE, b"b", b"c" * 9999]
    items = [content(part, number % 2 == 0) for number, part in enumerate(parts)]
    file = bytearray()
    packer = PACKERS[name]
    found = list(write_contents([DAMAGE, items[0], DAMAGE, *items[1:]], packer, file.extend))
    assert [one for one in found if isinstance(one, Damage)] == [DAMAGE] * 2
    written = [one for one in found if isinstance(one, Packed)]
    assert [one.content for one in written] == items
    assert file.startswith(packer.head)
    assert bool(packer.head) == (name == "dictionary")
    end = len(packer.head)
    for one, part in zip(written, parts, strict=True):
        assert one.offset == end
        end += one.length
        assert unpacked(bytes(file[one.offset : end]), name) == part
        if name != "gz":
            frame = zstandard.get_frame_parameters(bytes(file[one.offset : end]))
            assert (frame.dict_id, frame.content_size, frame.has_checksum) == (
                40_000 if name == "dictionary" else 0,
                len(part),
                True,
            )
        assert packed_size(one.content, packer) == one.length
    assert end == len(file)


def test_what_packs_a_file_and_how_it_begins() -> None:
    version = ".".join(map(str, zstandard.ZSTD_VERSION))
    plain, other, gz = ZstPacker(6), ZstPacker(6, DICTIONARY), GzipPacker(12)
    assert (plain.head, plain.library, other.library) == (b"", f"zstd {version}", f"zstd {version}")
    assert other.head.startswith(b"\x5d\x2a\x4d\x18")
    assert (gz.head, gz.library.partition(", ")[0]) == (b"", "libdeflate")
    for packer, name in ((plain, "zst"), (other, "dictionary"), (gz, "gz")):
        for is_held in (True, False):
            written: list[bytes] = []
            (_,) = write_contents([content(NOISE, is_held)], packer, written.append)
            assert unpacked(b"".join(written), name) == NOISE
            if name != "gz":
                frame = zstandard.get_frame_parameters(b"".join(written)[len(packer.head) :])
                assert (frame.dict_id, frame.content_size, frame.has_checksum) == (
                    40_000 if name == "dictionary" else 0,
                    len(NOISE),
                    True,
                )


@pytest.mark.parametrize("name", PACKERS)
def test_an_archive_without_records_stays_empty(name: str) -> None:
    file = bytearray()
    assert list(write_contents([DAMAGE], PACKERS[name], file.extend)) == [DAMAGE]
    assert file == b""


@pytest.mark.parametrize("size", [0, 1999, 2001])
def test_a_large_record_that_has_another_size_when_it_is_read_again_stops_the_run(size: int) -> None:
    one = content(b"a" * 2000, is_held=False)._replace(stream=lambda: iter((b"a" * size,)))
    with pytest.raises(StoppedError, match="does not decompress to the same bytes"):
        PACKERS["gz"].pack_large(one, len)


class Faulty(Packer):
    """A machine whose memory is damaged: what is decompressed differs from what was compressed."""

    def __init__(self, change: bytes) -> None:
        self._compress, self._decompress = bytes, lambda data: data[: -len(change)] + change
        self._change = change

    def _streams(self, size: int) -> tuple[Faulty, type[bytes]]:
        return self, bytes

    def compress(self, data: bytes) -> bytes:
        self._change, data = b"", data[: len(data) - len(self._change)] + self._change
        return data

    def flush(self) -> bytes:
        return b""


@pytest.mark.parametrize("is_held", [True, False])
def test_bytes_that_come_out_different_stop_the_run(is_held: bool) -> None:
    with pytest.raises(StoppedError, match="check the memory of this machine"):
        packed_size(content(b"abcdefg", is_held), Faulty(b"X"))
    assert packed_size(content(b"abcdefg", is_held), Faulty(b"g")) == 7


PAGE = b"<p>page 17 of 289" * 40
HEAD = len(PACKERS["dictionary"].head)
SAVED = len(PACKERS["zst"].pack(PAGE)) - len(PACKERS["dictionary"].pack(PAGE))


def chosen(items: list[Content | Damage], size: int) -> tuple[bool, int]:
    """Whether the dictionary is chosen, and how many contents were looked at. All are given back."""
    taken = 0

    def counted() -> Iterator[Content | Damage]:
        nonlocal taken
        for item in items:
            taken += 1
            yield item

    packer, again = choose_packer(counted(), PACKERS["dictionary"], PACKERS["zst"], size)
    looked_at = taken
    assert list(again) == items
    assert packer in (PACKERS["dictionary"], PACKERS["zst"])
    return packer is PACKERS["dictionary"], looked_at


def test_a_dictionary_is_chosen_as_soon_as_it_has_saved_its_bytes() -> None:
    number = HEAD // SAVED + 1
    pages: list[Content | Damage] = [content(PAGE) for _ in range(number)]
    assert chosen([DAMAGE, *pages, *pages], 10**6) == (True, number + 1)
    assert chosen(pages[:-1], 10**6) == (False, number - 1)
    assert chosen([], 0) == (False, 0)
    assert chosen([DAMAGE], 10) == (False, 1)


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(("more", "is_chosen"), [(-2, False), (2, True)])
def test_after_some_records_the_rest_is_expected_to_be_like_them(
    more: int, is_chosen: bool, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A content that is not held in memory decides, because it cannot be packed twice."""
    monkeypatch.setattr(pack_contents, "_TRIED", 2 * len(PAGE) if is_held else 1 << 20)
    second = content(PAGE, offset=len(PAGE)) if is_held else content(PAGE, is_held=False, offset=len(PAGE))
    items: list[Content | Damage] = [content(PAGE), second, content(PAGE)]
    saved, read = (2 * SAVED, 2 * len(PAGE)) if is_held else (SAVED, len(PAGE))
    assert chosen(items, HEAD * read // saved + more) == (is_chosen, 2)
