"""python-zstandard reads the byte range of each line of zst archives, with and without a dictionary.

The archives are pywb's gz archives, written again with one zstd frame per gzip member, as IIPC's
"WARC zstd" 1.0 requires. Their lines must equal those of the gz archives, except offset and length.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
import zstandard

from .archives import Archive, pywb_archives
from .opinions import cut
from .ours import Ours, index_all
from .seen import seen_alone, seen_at

GZ = [archive for archive in pywb_archives() if archive.path.name.endswith(".warc.gz")]
DICTIONARY_FRAME = (0x184D2A5D).to_bytes(4, "little")
PLACE = ("offset", "length")


def members(data: bytes) -> list[bytes]:
    """The content of each gzip member."""
    contents = []
    while data:
        inflater = zlib.decompressobj(31)
        contents.append(inflater.decompress(data) + inflater.flush())
        data = inflater.unused_data
    return contents


def trained() -> zstandard.ZstdCompressionDict:
    """A dictionary made of all records of the gz archives."""
    records: list[bytes | bytearray | memoryview[int]] = []
    for archive in GZ:
        records += members(archive.path.read_bytes())
    return zstandard.train_dictionary(4096, records)


def write_zst(path: Path, records: list[bytes], dictionary: zstandard.ZstdCompressionDict | None) -> None:
    """A zst archive with one frame per record. The dictionary, if any, comes first."""
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True, write_content_size=True)
    frames = [compressor.compress(record) for record in records]
    if dictionary is not None:
        data = dictionary.as_bytes()
        frames.insert(0, DICTIONARY_FRAME + len(data).to_bytes(4, "little") + data)
    path.write_bytes(b"".join(frames))


Made = tuple[list[Archive], dict[str, Ours], dict[str, Ours], zstandard.ZstdDecompressor]


@pytest.fixture(scope="module", params=["plain", "with dictionary"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    directory = tmp_path_factory.mktemp("zst")
    dictionary = trained() if request.param == "with dictionary" else None
    archives = []
    for archive in GZ:
        path = directory / archive.path.name.replace(".gz", ".zst")
        write_zst(path, members(archive.path.read_bytes()), dictionary)
        archives.append(Archive(archive.name, path))
    answers = index_all(archives, directory / "zst").answers
    expected = index_all(GZ, directory / "gz").answers
    return archives, answers, expected, zstandard.ZstdDecompressor(dict_data=dictionary)


def test_zst_and_gz_give_the_same_lines_except_offset_and_length(made: Made) -> None:
    archives, answers, expected, _ = made
    for archive in archives:
        mine, theirs = (
            [
                {k: v for k, v in row.items() if k not in PLACE}
                for _, row in sorted(some[archive.name].rows.items())
            ]
            for some in (answers, expected)
        )
        assert mine == theirs
    assert sum(len(ours.rows) for ours in answers.values()) > 100


def test_a_zst_range_is_one_frame_that_holds_the_record_of_its_line(made: Made) -> None:
    archives, answers, expected, decompressor = made
    for archive, original in zip(archives, GZ, strict=True):
        places = sorted(expected[archive.name].rows)
        for offset, place in zip(sorted(answers[archive.name].rows), places, strict=True):
            row = answers[archive.name].rows[offset]
            record = decompressor.decompress(cut(archive.path, offset, int(row["length"])))
            assert record.endswith(b"\r\n\r\n")
            assert seen_alone(record[:-4]).identity == seen_at(original.path, place).identity
