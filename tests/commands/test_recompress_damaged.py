"""`recompress` and Zstandard frames that cannot be read: each is reported with its offset, and the rest is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdxmill.capture import Damage
from cdxmill.cli.main import main
from cdxmill.errors import StoppedError
from cdxmill.stages.records.pack_contents import GzipPacker, ZstPacker, write_contents
from cdxmill.stages.records.read_contents import Content, read_contents
from cdxmill.storage.scratch import Scratch

from ..reliability.sources import dictionary_frame
from .test_recompress import RECORDS, decompressed, failures, frame, member, recompress, record

PARTS: list[bytes | bytearray | memoryview] = [b"number %d of many" % (n * n) * 9 for n in range(3000)]
FIRST = zstandard.train_dictionary(4096, PARTS, dict_id=40000)
SECOND = zstandard.train_dictionary(4096, PARTS[::2], dict_id=50000)


def with_dictionary(data: bytes, dictionary: zstandard.ZstdCompressionDict) -> bytes:
    return zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True).compress(data)


def with_window(data: bytes, log: int) -> bytes:
    """A frame that needs a window of 2**log bytes."""
    settings = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=log, hash_log=10, chain_log=10, write_content_size=False, write_checksum=True
    )
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    return packer.compress(data) + packer.flush()


def claiming(size: int, data: bytes) -> bytes:
    """A frame with a wrong content size of 8 bytes."""
    honest = frame(data)
    header = 4 + 1 + (1, 2, 4, 8)[honest[4] >> 6]
    return honest[:4] + bytes((honest[4] | 0xC0,)) + size.to_bytes(8, "little") + honest[header:]


def flipped(data: bytes) -> bytes:
    return data[:-9] + bytes((data[-9] ^ 1,)) + data[-8:]


GOOD = frame(RECORDS[0])
BAD = {
    "a dictionary is missing": (
        with_dictionary(RECORDS[1], FIRST),
        "the frame needs the zstd dictionary 40000, and the file has none",
    ),
    "1 TB": (claiming(1 << 40, RECORDS[1]), "the frame needs a window of 1048576 MiB; the limit is 128 MiB"),
    "large window": (
        with_window(RECORDS[1], 28),
        "the frame needs a window of 256 MiB; the limit is 128 MiB",
    ),
    "corrupt": (flipped(frame(RECORDS[2])), "corrupt zstd data"),
    "wrong size": (claiming(len(RECORDS[1]) + 1, RECORDS[1]), "corrupt zstd data"),
    "garbage": (b"not a frame", "no zstd frame starts here"),
    "truncated, and more": (frame(RECORDS[2])[:-7], ""),
}


@pytest.mark.parametrize("to", ["zst", "gz"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_frame_costs_no_other_record(kind: str, to: str, tmp_path: Path) -> None:
    bad, reason = BAD[kind]
    source = tmp_path / "a.warc.zst"
    source.write_bytes(GOOD + bad + frame(RECORDS[3]) + frame(RECORDS[4]))
    assert recompress("-o", tmp_path / "out", "--to", to, source) == 1
    ((path, reasons),) = failures(tmp_path / "out").items()
    assert path == str(source)
    assert len(reasons) == 1
    assert reasons[0].startswith(reason)
    offset = (tmp_path / "out/failures.tsv").read_text().split("\t")[1]
    assert offset == str(len(GOOD))
    assert decompressed(tmp_path / f"out/a.warc.{to}") == [RECORDS[0], RECORDS[3], RECORDS[4]]


def test_the_end_of_an_archive_is_damaged(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.zst"
    for end in (b"trailing", bytes(100), GOOD[:30], b"\x50\x2a\x4d\x18\xff\0\0\0abc"):
        source.write_bytes(GOOD + end)
        assert recompress("--replace", "-o", tmp_path / "out", source) == 1
        assert decompressed(tmp_path / "out/a.warc.zst") == [RECORDS[0]]


def test_frames_with_another_dictionary_are_reported(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.zst"
    frames = [with_dictionary(RECORDS[1], FIRST), with_dictionary(RECORDS[2], SECOND)]
    source.write_bytes(dictionary_frame(SECOND.as_bytes()) + b"".join(frames))
    assert recompress("-o", tmp_path / "out", source) == 1
    (reasons,) = failures(tmp_path / "out").values()
    assert reasons[0].startswith("the frame needs the zstd dictionary 40000, and the file has 50000")
    assert decompressed(tmp_path / "out/a.warc.zst") == [RECORDS[2]]


def test_the_limit_of_the_window_can_be_raised(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.warc.zst"
    source.write_bytes(GOOD + with_window(RECORDS[1], 28))
    assert main(["index", "-q", "-o", str(tmp_path / "cdx"), str(source)]) == 1
    assert "--max-window" in capfd.readouterr().err
    assert recompress("--max-window", "256", "-o", tmp_path / "out", source) == 0
    assert decompressed(tmp_path / "out/a.warc.zst") == RECORDS[:2]


def test_gzip_in_one_piece_that_is_truncated_keeps_what_is_whole(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.gz"
    whole = member(b"".join(RECORDS))
    source.write_bytes(whole[: len(whole) // 2])
    assert recompress("-o", tmp_path / "out", source) == 1
    written = decompressed(tmp_path / "out/a.warc.zst")
    assert written == RECORDS[: len(written)]
    assert len(written) == 4
    (reasons,) = failures(tmp_path / "out").values()
    assert any("truncated inside a gzip member" in reason for reason in reasons)


def test_gzip_in_one_piece_with_a_wrong_checksum_gives_nothing(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.gz"
    whole = member(b"".join(RECORDS))
    source.write_bytes(whole[:-6] + b"\0\0" + whole[-4:])
    assert recompress("-o", tmp_path / "out", source) == 1
    assert not list((tmp_path / "out").glob("*.zst"))
    (reasons,) = failures(tmp_path / "out").values()
    assert reasons[0].startswith("gzip CRC32 mismatch")


SIZES = st.one_of(
    st.integers(0, 3), st.integers(131072 - 300, 131072 + 3), st.sampled_from([0, 1, 131071, 131073])
)
PACKERS = (ZstPacker(3), ZstPacker(1, FIRST.as_bytes()), GzipPacker(1))


@settings(max_examples=60)
@given(st.lists(SIZES, min_size=1, max_size=6), st.sampled_from(PACKERS), st.data())
@example([64 << 20, 0, 1], PACKERS[0], None)
@example([64 << 20], PACKERS[2], None)
def test_contents_of_all_sizes_are_written_and_read_again(
    sizes: list[int], packer: ZstPacker | GzipPacker, data: st.DataObject | None
) -> None:
    records = [record(bytes(size), number) for number, size in enumerate(sizes)]
    written = bytearray()
    for _ in write_contents(contents_of(records), packer, written.extend):
        pass
    assert contents(bytes(written)) == records
    if data is not None:
        end = data.draw(st.integers(0, len(written) - 1))
        found = contents(bytes(written[:end]))
        assert found == records[: len(found)], "of a truncated archive, the records before the end"


@pytest.mark.parametrize("wrong", [b"other", b"", b"number", b"numbers and more"])
def test_a_member_that_does_not_decompress_to_the_same_bytes_is_not_written(
    wrong: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As memory with an error would have it: the compressor gets other bytes than those of the record."""
    for packer in (ZstPacker(3), GzipPacker(1)):
        good = packer.pack
        with monkeypatch.context() as patch:
            compress = packer._compress
            patch.setattr(packer, "_compress", lambda data, compress=compress: compress(wrong))
            with pytest.raises(StoppedError, match="does not decompress to the same bytes"):
                good(b"numbers")
        written = list[bytes]()
        large = Content(0, 0, 7, None, lambda: iter((b"num", b"bers")))
        assert packer.pack_large(large, written.append) == len(b"".join(written))
        with monkeypatch.context() as patch:
            patch.setattr(packer, "_streams", partial(streams_of, packer._streams, wrong))
            with pytest.raises(StoppedError, match="does not decompress to the same bytes"):
                packer.pack_large(large, written.append)
    with pytest.raises(StoppedError, match="does not decompress to the same bytes"):
        GzipPacker(1).pack_large(Content(0, 0, 7, None, lambda: iter((b"num",))), written.append)


class OtherStream:
    """A compressor that compresses other bytes than it is given."""

    def __init__(self, stream: Any, wrong: bytes) -> None:
        self._stream, self._wrong = stream, wrong

    def compress(self, data: bytes) -> bytes:
        return b""

    def flush(self) -> bytes:
        return bytes(self._stream.compress(self._wrong) + self._stream.flush())


def streams_of(streams: Callable[[int], tuple[Any, Any]], wrong: bytes, size: int) -> tuple[OtherStream, Any]:
    stream, unpack = streams(len(wrong))
    return OtherStream(stream, wrong), unpack


def contents_of(records: list[bytes]) -> list[Content | Damage]:
    """As `read_contents` gives them: large ones without data."""
    return [
        Content(0, 0, len(data), data if len(data) < 1 << 20 else None, lambda data=data: pieces(data))  # type: ignore[misc]
        for data in records
    ]


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + (1 << 20)] for start in range(0, len(data), 1 << 20))


def contents(data: bytes) -> list[bytes]:
    items = read_contents(lambda offset, size: data[offset : offset + size], Scratch(Path("absent")))
    return [b"".join(item.pieces()) for item in items if isinstance(item, Content)]
