"""zipnum notes two CDX files that name one archive, but have records of two."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.inputs import shared_names
from cdxmill.inputs.cdx_files import CdxSource
from cdxmill.inputs.shared_names import two_archives
from cdxmill.storage.location import Location, locate

NOTE = "note: both have lines of c.warc.gz, but of different records"


def write(
    path: str, ranges: list[tuple[int, int]], timestamp: str = "20200101000000", name: str = "c"
) -> str:
    """A CDX file with a line for each range of an archive."""
    lines = [
        f'com,example)/{offset} {timestamp} {{"url": "http://example.com/{offset}", "length": "{size}",'
        f' "offset": "{offset}", "filename": "{name}.warc.gz"}}\n'
        for offset, size in ranges
    ]
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_bytes(gzip.compress("".join(sorted(lines)).encode()))
    return path


APART = [(0, 10), (10, 20), (30, 5)]


@pytest.mark.parametrize(
    ("ranges", "timestamp", "name", "is_noted"),
    [
        ([(100, 10), (35, 20)], "20200101000000", "c", False),  # two indexes of parts of one archive
        (APART, "20200101000000", "c", False),  # the same index again
        ([(5, 30)], "20200101000000", "c", True),
        (APART, "20210101000000", "c", True),
        ([(5, 30)], "20200101000000", "other", False),
    ],
)
def test_two_archives_with_one_name_are_noted(
    ranges: list[tuple[int, int]],
    timestamp: str,
    name: str,
    is_noted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [write("a/c.cdx.gz", APART), write("b/c.cdx.gz", ranges, timestamp, name)]
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", *files]) == 0
    assert (f"a/c.cdx.gz and b/c.cdx.gz: {NOTE}" in capsys.readouterr().err) == is_noted


def test_lines_of_two_archives_in_one_file_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first = gzip.decompress(Path(write("a.cdx.gz", APART)).read_bytes())
    for name, ranges in (("b", [(35, 5)]), ("c", [(5, 30)])):
        second = gzip.decompress(Path(write(f"{name}.cdx.gz", ranges)).read_bytes())
        Path(f"{name}.cdxj").write_bytes(b"".join(sorted((first + second).splitlines(keepends=True))))
    assert main(["zipnum", "-q", "-s", "1", "-o", "b", "b.cdxj"]) == 0
    assert "note" not in capsys.readouterr().err
    assert main(["zipnum", "-q", "-s", "1", "-o", "c", "c.cdxj"]) == 0
    assert "c.cdxj: note: has lines of c.warc.gz, but of different records" in capsys.readouterr().err


def test_files_that_start_with_other_archives_are_compared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = []
    for name, ranges in (("a", APART), ("b", [(5, 30)])):
        path = write(f"{name}.cdx.gz", [(0, 1)], name=name)
        lines = Path(path).read_bytes() + Path(write("c.cdx.gz", ranges)).read_bytes()
        Path(path).write_bytes(lines)
        files.append(path)
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", *files]) == 0
    assert f"a.cdx.gz and b.cdx.gz: {NOTE}" in capsys.readouterr().err


def test_the_start_of_every_small_file_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each begins with an archive of its own, and only the last two have one in common."""
    monkeypatch.chdir(tmp_path)
    for number in range(40):
        path = Path(write(f"{number:02}.cdx.gz", [(0, 1)], name=f"own-{number}"))
        if number in (38, 39):
            more = write("more.cdx.gz", APART if number == 38 else [(5, 30)])
            path.write_bytes(path.read_bytes() + Path(more).read_bytes())
    Path("more.cdx.gz").unlink()
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", "."]) == 0
    assert f"38.cdx.gz and 39.cdx.gz: {NOTE}" in capsys.readouterr().err.replace("./", "")


def test_files_of_one_archive_are_compared_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They come after the 64 files that are compared in any case."""
    monkeypatch.chdir(tmp_path)
    for number in range(64):
        write(f"{number:02}.cdx.gz", [(0, 1)], name=f"own-{number}")
    write("x.cdx.gz", APART)
    write("y.cdx.gz", [(5, 30)])
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", "."]) == 0
    assert f"x.cdx.gz and y.cdx.gz: {NOTE}" in capsys.readouterr().err.replace("./", "")


def test_real_archives_with_one_name_are_noted(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory, archive in (("a", "iana.warc.gz"), ("b", "dupes.warc.gz")):
        Path(directory).mkdir()
        Path(directory, "c.warc.gz").write_bytes((pywb_warcs / archive).read_bytes())
        assert main(["index", "-q", "-o", f"cdx-{directory}", f"{directory}/c.warc.gz"]) == 0
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", "cdx-a", "cdx-b"]) == 0
    assert NOTE in capsys.readouterr().err


class Read:
    """Sources whose pieces are made up. It notes how many pieces of each are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces: dict[str, list[bytes]] = {}
        self.read: Counter[str] = Counter()
        monkeypatch.setattr(shared_names, "read_pieces", self._read)

    def _read(self, place: Location) -> Iterator[bytes]:
        for piece in self.pieces.get(place.text, [b""]):
            self.read[place.text] += 1
            yield piece

    def source(self, name: str, size: int = 1, archive: bytes = b"") -> CdxSource:
        return CdxSource(locate(name), size, 5.0, 0, archive=archive)


def line(offset: int, length: str = ', "length": "10"', name: str = "c.warc.gz", time: int = 2020) -> bytes:
    return f'com,a)/ {time} {{"url": "http://a.com/", "offset": "{offset}"{length}, "filename": "{name}"}}\n'.encode()


@pytest.mark.parametrize(
    ("sizes", "compared"),
    [
        ([5, 5, 5, 5], 4),
        ([5, 5, 5, 6], 3),
        ([5, 5, 5, 5, 1], 4),
        ([10, 10], 2),
        ([1000, 1000, 1], 2),  # each counts for what is compared of it
        ([0] * 70, 64),
    ],
)
def test_of_files_with_other_archives_the_first_ones_are_compared(
    sizes: list[int], compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_names, "_COMPARED", 80)
    monkeypatch.setattr(shared_names, "_FIRST", 2)
    read = Read(monkeypatch)
    own = [read.source(str(number), size, b"%d" % number) for number, size in enumerate(sizes)]
    assert list(two_archives([read.source("http://h/a"), *own])) == []
    assert list(read.read) == [str(number) for number in range(compared)], "and none that costs a request"


def test_files_on_a_server_are_compared_if_they_have_one_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Read(monkeypatch)
    read.pieces = {"http://h/a": [line(0)], "http://h/b": [line(5)]}
    (note,) = two_archives([read.source(name, archive=b"c.warc.gz") for name in read.pieces])
    assert note.startswith(f"http://h/a and http://h/b: {NOTE}")


@pytest.mark.parametrize(("length", "pieces"), [(999, 2), (1000, 2), (1001, 1)])
def test_a_file_is_read_as_far_as_it_is_compared(
    length: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_names, "_COMPARED", 1000)
    read = Read(monkeypatch)
    read.pieces["a"] = [b" " * length + b"\n"] * 5
    assert list(two_archives([read.source("a")])) == []
    assert read.read["a"] == pieces


@pytest.mark.parametrize(
    ("one", "other", "is_noted"),
    [
        (line(0), line(9), True),
        (line(0), line(10), False),
        (line(9), line(0), True),
        (line(0), line(0), False),
        (line(0), line(0, time=2021), True),
        (line(0), line(9, name="d.warc.gz"), False),
        (line(0), line(9, ""), False),
        (line(0), line(9, ', "length": "0"'), False),
        (line(0), b" CDX N b a\n", False),
        (line(0), b"com,a)/ 2020 {}\n", False),
        (line(0), b"com,a)/ 2020 {}\n" + line(9), True),
    ],
)
def test_two_ranges_overlap_unless_they_are_one(
    one: bytes, other: bytes, is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Read(monkeypatch)
    read.pieces = {"a": [one], "b": [other]}
    notes = list(two_archives([read.source("a"), read.source("b")]))
    assert len(notes) == is_noted
    read.pieces = {"a": [one + other], "b": [b""]}
    assert len(list(two_archives([read.source("a"), read.source("b")]))) == is_noted, "in one file, too"
