"""The directory of a zip gives the same bytes as Python's zipfile, or an error."""

from __future__ import annotations

import io
import random
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.archives.zip_directory import Member, ZipError, data_offset, read_directory

from ..material.wacz_files import DATA, make_wacz, stream_wacz

NAMES = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=9)
FILES = st.dictionaries(
    NAMES.filter(lambda name: name not in (".", "..")), st.binary(max_size=90), min_size=1, max_size=5
)


class Bytes:
    """`read_at` of bytes in memory, with the largest read so far."""

    def __init__(self, data: bytes) -> None:
        self.data, self.largest = data, 0

    def __call__(self, offset: int, size: int) -> bytes:
        assert offset >= 0 and size >= 0
        self.largest = max(self.largest, size)
        return self.data[offset : offset + size]


def content(data: bytes) -> dict[str, bytes]:
    """All files of a zip. Raises ZipError."""
    read_at = Bytes(data)
    found = {}
    for name, member in read_directory(read_at, len(data)).items():
        start = data_offset(read_at, member)
        found[name] = data[start : start + member.size]
    return found


@given(FILES, st.binary(max_size=70).filter(lambda comment: b"PK" not in comment), st.binary(max_size=70))
def test_zips_of_every_form_are_read(files: dict[str, bytes], comment: bytes, front: bytes) -> None:
    assert content(make_wacz(files, comment=comment)) == files
    assert content(make_wacz(files, comment=comment, front=front)) == files
    assert content(stream_wacz(files)) == files
    assert content(stream_wacz(files, zip64=True)) == files


def test_a_zip_with_64_bit_offsets_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    files = {"a": b"x" * 50, "b": b"y" * 60}
    data = make_wacz(files)
    assert b"PK\x06\x06" in data
    monkeypatch.undo()
    assert content(data) == files
    counts = data.rfind(b"PK\x05\x06") + 8  # too many files for 16 bits: only the 64-bit end has their number
    assert content(data[:counts] + b"\xff" * 4 + data[counts + 4 :]) == files


def test_a_zip_that_is_larger_than_any_directory_is_read() -> None:
    files = {DATA: bytes(20 << 20)}
    assert content(make_wacz(files)) == files


def test_directories_are_no_files() -> None:
    assert content(make_wacz({"archive/": b"", DATA: b"x"})) == {DATA: b"x"}


@pytest.mark.parametrize("name", ["../a", "a/../b", "/a", "a//b", "a/./b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ZipError, match="leads elsewhere"):
        content(make_wacz({name: b"x"}))


def test_a_compressed_file_is_refused_and_others_are_read() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"x" * 99, zipfile.ZIP_DEFLATED)
        archive.writestr("b", b"y" * 99)
    read_at = Bytes(out.getvalue())
    found = read_directory(read_at, len(read_at.data))
    with pytest.raises(ZipError, match="is compressed"):
        data_offset(read_at, found["a"])
    start = data_offset(read_at, found["b"])
    assert read_at.data[start : start + 99] == b"y" * 99


def test_a_file_that_the_directory_hides_is_noticed() -> None:
    data = bytearray(make_wacz({"a": b"x", "b": b"y"}))
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 1)
    comment_size = data.index(b"PK\x05\x06") - second
    data[first + 32 : first + 34] = comment_size.to_bytes(2, "little")
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        assert archive.namelist() == ["a"]
    with pytest.raises(ZipError, match="more or fewer files"):
        content(bytes(data))


def test_a_huge_directory_is_refused_and_not_read() -> None:
    data = bytearray(make_wacz({DATA: b"x" * 100}))
    end = data.rindex(b"PK\x05\x06")
    data[end + 12 : end + 16] = (40 << 20).to_bytes(4, "little")
    body = bytes(50 << 20) + bytes(data)  # the directory would be in here
    read_at = Bytes(body)
    with pytest.raises(ZipError, match="more than 16 MiB"):
        read_directory(read_at, len(body))
    assert read_at.largest < 1 << 20


def test_the_sizes_after_the_bytes_have_to_be_those_of_the_directory() -> None:
    data = bytearray(stream_wacz({DATA: b"x" * 100}))
    at = data.index(b"PK\x07\x08")
    data[at + 8] += 1
    with pytest.raises(ZipError, match="disagree"):
        content(bytes(data))


def _damage(data: bytes, rng: random.Random) -> bytes:
    """Bytes replaced, cut out, doubled or zeroed; most often near the end, where the directory is."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data)) if rng.random() < 0.4 else max(0, len(data) - rng.randint(1, 200))
        size = rng.choice((1, 1, 1, 4, 20))
        new = rng.choice((rng.randbytes(size), b"\xff" * size, bytes(size), b"", data[at : at + size] * 2))
        data = data[:at] + new + data[at + size :]
    return data


@settings(max_examples=500)
@given(st.integers(0, 1 << 40))
def test_a_corrupt_zip_gives_what_zipfile_gives_or_an_error(seed: int) -> None:
    """Nothing but ZipError, no large reads, and no range beyond the zip; names and bytes are those that zipfile reads."""
    rng = random.Random(seed)
    files = {f"archive/{number}.warc.gz": rng.randbytes(rng.randrange(60)) for number in range(3)}
    data = _damage((make_wacz if rng.random() < 0.5 else stream_wacz)(files), rng)
    read_at = Bytes(data)
    try:
        found = read_directory(read_at, len(data))
    except ZipError:
        return
    for member in found.values():
        try:
            start = data_offset(read_at, member)
        except ZipError:
            continue
        own = data[start : start + member.size]
        assert len(own) == member.size
        expected = _by_zipfile(data, member)
        assert expected is None or expected == own
    assert read_at.largest < 1 << 17


def _by_zipfile(data: bytes, member: Member) -> bytes | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(member.name)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OverflowError, RuntimeError):
        return None


def test_only_a_directory_without_bytes_is_no_file() -> None:
    data = make_wacz({"a/": b"", "b": b"", "c/": b"x", "d/e": b"y"})
    found = read_directory(Bytes(data), len(data))
    assert list(found) == ["b", "c/", "d/e"]
    assert found["c/"].refused is not None
    assert found["b"].refused is found["d/e"].refused is None
