"""`cdxmill recompress`: the records of an archive, written again, are the same bytes in the same order.

`--index` writes the index that `index` would write of the new archive.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from cdxmill.cli.main import main

from ..reliability.sources import split_members

SKIPPABLE = b"\x2a\x4d\x18"
FRAME = b"\x28\xb5\x2f\xfd"
DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
CRLF = b"\r\n\r\n"
BESIDE = ("--index", "--offsets")
"""What is written beside each archive."""


def recompress(*args: str | Path) -> int:
    return main(["recompress", "-q", *map(str, args)])


def failures(directory: Path) -> dict[str, list[str]]:
    """The reasons of failures.tsv by archive."""
    listed = directory / "failures.tsv"
    found: dict[str, list[str]] = {}
    for row in listed.read_text("utf-8").splitlines() if listed.exists() else ():
        archive, _, reason, _ = row.split("\t")
        found.setdefault(archive, []).append(reason)
    return found


def frames(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each frame of a zst archive, and its content. The dictionary is taken from the first frame."""
    inflater, pos = zstandard.ZstdDecompressor(), 0
    if data.startswith(DICTIONARY_FRAME):
        pos = 8 + int.from_bytes(data[4:8], "little")
        dictionary = data[8:pos]
        if dictionary.startswith(FRAME):
            dictionary = inflater.decompress(dictionary)
        inflater = zstandard.ZstdDecompressor(zstandard.ZstdCompressionDict(dictionary))
    while pos < len(data):
        one = inflater.decompressobj()
        content = one.decompress(data[pos:])
        assert one.eof
        end = len(data) - len(one.unused_data)
        yield data[pos:end], content
        pos = end


def decompressed(path: Path) -> list[bytes]:
    """The content of each member or frame; the whole content, if it is not compressed. Stops at what is corrupt."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return [content for _, content in split_members(data)]
    if data.startswith((FRAME, DICTIONARY_FRAME)):
        return [content for _, content in frames(data)]
    return [data]


@pytest.fixture(scope="module")
def inputs(sample_archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All samples, each in a folder of its own."""
    directory = tmp_path_factory.mktemp("inputs")
    for number, path in enumerate(sample_archives):
        (directory / str(number)).mkdir()
        (directory / str(number) / path.name).symlink_to(path)
    return directory


NO_ARCHIVES = (".proof.json", ".cdx.gz", ".offsets.gz", ".tsv", ".json", ".failures")
Written = dict[Path, Path]
"""The new archive of each archive."""


def written(outputs: Path, inputs: Path) -> Written:
    found, archives = (
        {
            path.parent.name: path
            for path in sorted(directory.rglob("*/*"))
            if not path.name.endswith(NO_ARCHIVES)
        }
        for directory in (outputs, inputs)
    )
    return {archives[number]: path for number, path in found.items()}


@pytest.fixture(scope="module")
def to_zst(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    """All samples as zst."""
    directory = tmp_path_factory.mktemp("zst")
    assert recompress("-o", directory, *BESIDE, "--any-digest", inputs) == 1
    return directory, written(directory, inputs)


@pytest.fixture(scope="module")
def to_gz(to_zst: tuple[Path, Written], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    """These as gz."""
    directory = tmp_path_factory.mktemp("gz")
    assert recompress("--to", "gz", "-o", directory, *BESIDE, "--any-digest", to_zst[0]) == 1
    return directory, written(directory, to_zst[0])


def test_all_samples_go_to_zst_and_back_to_gz_without_a_change(
    inputs: Path, to_zst: tuple[Path, Written], to_gz: tuple[Path, Written]
) -> None:
    damaged = failures(to_zst[0])
    zst, gz = to_zst[1], to_gz[1]
    same = 0
    for archive in sorted(inputs.rglob("*/*")):
        if str(archive) in damaged:
            continue
        before = b"".join(decompressed(archive))
        assert before == b"".join(decompressed(zst[archive])), archive
        assert before == b"".join(decompressed(gz[zst[archive]])), archive
        same += 1
    assert same > 280
    assert all(Path(path).is_relative_to(to_gz[0]) for path in failures(to_gz[0])), (
        "only indexes lack records"
    )


def test_only_what_is_reported_is_left_out(inputs: Path, to_zst: tuple[Path, Written]) -> None:
    directory, zst = to_zst
    damaged = failures(directory)
    assert set(inputs.rglob("*/*")) - set(zst) <= {Path(path) for path in damaged}
    for archive in map(Path, damaged):
        if archive in zst and not archive.name.endswith(
            "gz"
        ):  # python cannot read all of a corrupt gzip file
            before, pos = b"".join(decompressed(archive)), 0
            for content in decompressed(zst[archive]):
                pos = before.index(content, pos) + len(content)


def test_the_frames_are_as_the_specification_requires(to_zst: tuple[Path, Written]) -> None:
    number = 0
    for path in to_zst[1].values():
        for frame, content in frames(path.read_bytes()):
            found = zstandard.get_frame_parameters(frame)
            assert found.content_size == len(content)
            assert found.has_checksum
            assert found.window_size <= 8 << 20
            assert not found.dict_id
            number += 1
    assert number > 7000


def indexes(directory: Path) -> dict[tuple[str, str], bytes]:
    """Each index by its folder, which is a number, and its name."""
    return {
        (path.parent.name, path.name): gzip.decompress(path.read_bytes())
        for path in directory.rglob("*.cdx.gz")
    }


@pytest.fixture(scope="module")
def indexed(
    inputs: Path,
    to_zst: tuple[Path, Written],
    to_gz: tuple[Path, Written],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path, Path]:
    """What `index` writes of all samples, of those as zst, and of these as gz."""
    old, zst, gz = (tmp_path_factory.mktemp(name) for name in ("old", "zst", "gz"))
    for directory, archives in ((old, inputs), (zst, to_zst[0]), (gz, to_gz[0])):
        assert main(["index", "-q", "-p", "1", "-o", str(directory), str(archives)]) in (0, 1)
    return old, zst, gz


@pytest.mark.parametrize("to", ["zst", "gz"])
def test_the_index_is_that_of_the_new_archive(
    to: str,
    indexed: tuple[Path, Path, Path],
    to_zst: tuple[Path, Written],
    to_gz: tuple[Path, Written],
    tmp_path: Path,
) -> None:
    old, zst, gz = indexed
    before, after, new = (zst, gz, to_gz[0]) if to == "gz" else (old, zst, to_zst[0])
    ours, theirs = indexes(new), indexes(after)
    assert ours == theirs
    assert sum(map(len, ours.values())) > 100_000
    _check_reindexed(before, new, tmp_path / "reindexed")


def _check_reindexed(old: Path, new: Path, moved: Path) -> None:
    """An old index that is rewritten has the lines of the new one, but for the records that `recompress` took apart."""
    assert main(["reindex", "-q", "-p", "1", "-o", str(moved), "--offsets", str(new), str(old)]) == 0
    expected = {directory: text for (directory, _), text in indexes(new).items()}
    found = {directory: text for (directory, _), text in indexes(moved).items()}
    repaired = {Path(path).parent.name for path in failures(old)}
    for directory in found.keys() & repaired:
        assert set(found[directory].splitlines()) <= set(expected.get(directory, b"").splitlines())
    for directory in found.keys() - repaired:
        assert found[directory] == expected[directory], directory
    assert len(found.keys() - repaired) > 250


def record(body: bytes, number: int = 0) -> bytes:
    header = f"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{number}>\r\nContent-Length: {len(body)}\r\n"
    dated = f"WARC-Target-URI: http://a.org/{number}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\r\n"
    return (header + dated).encode() + body + CRLF


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


RECORDS = [record(noise(size), number) for number, size in enumerate((0, 1, 100, 5000, 131072, 70000, 17))]


def member(data: bytes, level: int = 6) -> bytes:
    deflater = zlib.compressobj(level, zlib.DEFLATED, 31)
    return deflater.compress(data) + deflater.flush()


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def blocks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


WHOLE = b"".join(RECORDS)
ODD = {
    "plain": WHOLE,
    "gzip in one piece": member(WHOLE),
    "gzip blocks": b"".join(map(member, blocks(WHOLE, 65280))),
    "tiny gzip blocks": b"".join(map(member, blocks(WHOLE, 97))),
    "two records in a member": b"".join(map(member, [RECORDS[0], RECORDS[1] + RECORDS[2], *RECORDS[3:]])),
    "a record in two members": b"".join(
        map(member, [*RECORDS[:4], RECORDS[4][:999], RECORDS[4][999:], *RECORDS[5:]])
    ),
    "blank members": b"".join(map(member, [CRLF, *RECORDS[:3], CRLF, b"\n" * 99, *RECORDS[3:], CRLF])),
    "zst in one frame": frame(WHOLE),
    "zst blocks": b"".join(map(frame, blocks(WHOLE, 65280))),
    "several frames for a record": b"".join(
        map(frame, [*RECORDS[:4], *blocks(RECORDS[4], 50000), *RECORDS[5:]])
    ),
    "skippable frames": b"".join(map(frame, RECORDS)).replace(
        FRAME, b"\x50" + SKIPPABLE + b"\3\0\0\0abc" + FRAME
    )[11:],
}


@pytest.mark.parametrize("target", ["zst", "gz"])
@pytest.mark.parametrize("kind", ODD)
def test_each_record_gets_a_member_or_frame_of_its_own(kind: str, target: str, tmp_path: Path) -> None:
    source = tmp_path / "a.warc"
    source.write_bytes(ODD[kind])
    assert recompress("-o", tmp_path / "out", "--to", target, source) == 0
    (result,) = (tmp_path / "out").rglob(f"a.warc.{target}")
    contents = decompressed(result)
    if kind == "blank members":
        assert (
            b"".join(contents)
            == CRLF + b"".join(RECORDS[:3]) + CRLF + b"\n" * 99 + b"".join(RECORDS[3:]) + CRLF
        )
        assert len(contents) == len(RECORDS) + 1
    else:
        assert contents == RECORDS
