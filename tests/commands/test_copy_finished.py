"""What a directory says of the copy in it: the captures that are there, the names that are taken, and the files that come next."""

from __future__ import annotations

import errno
import gzip
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.copying import output
from cdxmill.commands.copying.output import ROW, CopyOutput, FileHead, Finished
from cdxmill.commands.copying.plan import Planned
from cdxmill.commands.copying.unit_files import ARC, WARC, Part
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.lines.capture_fields import RecordLocation
from cdxmill.storage.location import Location, locate

from .test_copy_unit import HTTP, REFERS, SHA, packed, record

HEAD = FileHead("20200101000000", [])
Row = tuple[str, int, str, str, str]
"""The file name, offset, timestamp and URL of a record, and its column `related`."""


def write_list(name: str, *rows: Row, archive: bytes | None = b"", place: str = "0\t9") -> None:
    """The list of an archive, and the archive beside it."""
    lines = [f"{one[0]}\t{one[1]}\t9\t{one[2]}\t{one[3]}\t{one[4]}\t{place}" for one in rows]
    Path("copy").mkdir(exist_ok=True)
    Path(f"copy/{name.partition('.')[0]}.tsv").write_text("\n".join(["\t".join(ROW), *lines, ""]))
    if archive is not None:
        Path(f"copy/{name}").write_bytes(archive)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy").mkdir()


def finished() -> Finished:
    return Finished(locate("copy"))


A: Row = ("a.warc.gz", 5, "20200101000000", "http://a.com/", "yes")


def test_the_lists_beside_archives_say_what_is_copied() -> None:
    b, c, d = ((*A[:3], f"http://{name}.com/") for name in "bcd")
    write_list("copy-00000.warc.gz", A, (*b, "no"))
    write_list("other-00012.arc.gz", (*c, "no other-digest"), (*d, "yes other-digest"))
    found = finished()
    key = ("a.warc.gz", 5)
    assert found.captures == {key: [A[:4], b, c, d]}
    assert found.unrelated == {b, c}
    assert found.other_digest == {c, d}
    assert A[:4] in found and b in found
    assert ("a.warc.gz", 6, *A[2:4]) not in found
    assert ("a.warc.gz", 5, "2020", A[3]) not in found
    assert found.names == {"copy-00000.warc.gz", "copy-00000.tsv", "other-00012.arc.gz", "other-00012.tsv"}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("copy-00000.warc.gz", True),
        ("x-123456.arc.gz", True),
        ("copy-0000.warc.gz", False),
        ("copy-00000.warc", False),
        ("copy-00000.warc.zst", False),
        ("copy00000.warc.gz", False),
        ("-00000.warc.gz", False),
    ],
)
def test_only_an_archive_with_a_name_of_a_copy_has_a_list(name: str, counts: bool) -> None:
    write_list(name, A)
    assert bool(finished().captures) == counts


def test_a_list_without_its_archive_and_an_archive_without_its_list_say_nothing() -> None:
    write_list("copy-00000.warc.gz", A, archive=None)
    Path("copy/copy-00001.warc.gz").touch()
    assert finished().captures == {}


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        (b"", False),
        (b"\n", False),
        (b"filename\toffset\n", False),
        (b"a\tb\tc\td\te\tf\tg\th\na\t5\t9\t-\thttp://a/\tno\t0\t9\n", False),
        ("\t".join(ROW).encode() + b"\n", True),
        ("\t".join(ROW).encode(), False),
        ("\t".join(ROW).encode() + b"\n" + b"a\t5\t9\t-\thttp://a/\tno\t0\t9", True),
    ],
)
def test_a_list_of_another_tool_is_no_list(text: bytes, is_ours: bool) -> None:
    """And a row without its line end is none."""
    Path("copy/copy-00000.warc.gz").touch()
    Path("copy/copy-00000.tsv").write_bytes(text)
    assert finished().captures == {}
    Path("copy/copy-00000.warc.gz").unlink()
    taken = CopyOutput(finished(), 9, HEAD)._next_name(WARC)
    assert taken == ("copy-00000.warc.gz" if is_ours else "copy-00001.warc.gz")


@pytest.mark.parametrize(
    "row", [b"", b"a\t5", b"a\tx\t9\t-\thttp://a/\tno\t0\t9", b"a\t5\t9\t-\thttp://a/\tno\tx\t9", b"a\t5\t9\t-\thttp://a/\tno\t0\tx",
            b"a\t5\t9\t-\thttp://a/\tno\t0\t9\t1"],
)  # fmt: skip
def test_a_corrupt_list_is_told(row: bytes) -> None:
    write_list("copy-00000.warc.gz", A)
    with Path("copy/copy-00000.tsv").open("ab") as file:
        file.write(row + b"\n")
    with pytest.raises(InputError) as told:
        finished()
    assert str(told.value) == (
        "copy/copy-00000.tsv: is corrupt; move it and the archive beside it away, and copy again"
    )


def planned(key: str, time: str = A[2], url: str = "", name: str = A[0], offset: int = 5) -> Planned:
    line = f'{key} {time} {{"url": "{url}", "length": "9", "offset": "{offset}", "filename": "{name}"}}'
    return Planned(RecordLocation(name, offset, 9, "", time, "", ""), 0, 0, line.encode())


@pytest.mark.parametrize(
    ("one", "is_there"),
    [
        (planned("com,a)/"), True),
        (planned("x", url="http://a.com/"), True),
        (planned("com,a)/", url="http://a.com:80/"), True),
        (planned("com,a)/x", url="http://a.com/x"), False),
        (planned("com,a)/", "20200101000001"), False),
        (planned("com,a)/", name="b.warc.gz"), False),
        (planned("com,a)/", offset=6), False),
        (planned("com,a)/", "-"), True),
        (planned("com.a/:http", "-", "http://A.com:80/"), True),
        (planned("com.a/:http", "-", "http://b.com/"), False),
        (planned("com.a/:http", url="http://A.com:80/"), False),
    ],
)
def test_a_capture_is_there_if_its_place_its_time_and_its_url_are(one: Planned, is_there: bool) -> None:
    """A line of a prefix B-tree has no URL, and one of 2012 has no time and no SURT."""
    write_list("copy-00000.warc.gz", (*A[:3], "http://other.com/", "no"), A)
    assert finished().copied(one) == (A[:4] if is_there else None)


def test_the_headers_of_copied_revisits_are_read_in_the_copy() -> None:
    revisit = packed(record("revisit", "http://a.com/", b"HTTP/1.1 200 OK\r\n\r\n", HTTP + SHA + REFERS))
    first = packed(record("response", "http://b.com/"))
    other = ("b.warc.gz", 0, *A[2:])
    place = f"{len(first)}\t{len(revisit)}"
    write_list("copy-00000.warc.gz", other, A, archive=first + revisit, place=place)
    found, wanted = finished(), [*A[:4], 3, "http://a.com/", "and more"]
    assert list(found.revisits([wanted])) == [
        [3, "http://a.com/", "and more", "http://o.com/", "2023-01-01T00:00:00Z"]
    ]
    assert list(found.revisits([["c.warc.gz", *wanted[1:]]])) == []
    assert list(found.revisits([])) == []
    Path("copy/copy-00000.warc.gz").write_bytes(first + bytes(len(revisit)))
    with pytest.raises(InputError) as told:
        list(found.revisits([wanted]))
    assert str(told.value).startswith("copy/copy-00000.warc.gz: ")
    assert str(told.value).endswith(f" at {len(first)}; move this file and its index away")


def full(*given: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def part(*names: str, lines: bool = False) -> Part:
    """A part with a record of 10 bytes for each name."""
    rows = [f"{name}.warc.gz\t0\t9\t-\thttp://{name}.com/\tno" for name in names]
    made = (
        [f'com,{name})/ 2020 {{"length": "10", "offset": "0", "filename": ""}}' for name in names]
        if lines
        else [""] * len(names)
    )
    return Part(rows, [10] * len(names), made)


def unit(name: str, text: str) -> Path:
    """The file of a unit: each letter is a record of 10 bytes."""
    Path(name).write_bytes(b"".join(letter.encode() * 10 for letter in text))
    return Path(name)


@pytest.mark.parametrize(
    ("names", "following"),
    [
        ([], ["copy-00000.warc.gz", "copy-00001.arc.gz"]),
        (["copy-00000.warc.gz"], ["copy-00001.warc.gz", "copy-00002.arc.gz"]),
        (["x-00000.arc.gz", "x-00002.warc.gz"], ["copy-00001.warc.gz", "copy-00003.arc.gz"]),
        (["copy-00001.cdxj"], ["copy-00000.warc.gz", "copy-00002.arc.gz"]),
        (["copy-00000.tsv"], ["copy-00001.warc.gz", "copy-00002.arc.gz"]),
        (["x-00000.tsv", "x-00000.cdxj"], ["copy-00000.warc.gz", "copy-00001.arc.gz"]),
        (["copy-00000.txt", "copy-0000.tsv", "copy-00000x.tsv"], ["copy-00000.warc.gz", "copy-00001.arc.gz"]),
        (
            [f"copy-0000{number}.{end}" for number in range(9) for end in ("cdxj", "txt")],
            ["copy-00009.warc.gz", "copy-00010.arc.gz"],
        ),
        (["copy-123456.warc.gz"], ["copy-00000.warc.gz", "copy-00001.arc.gz"]),
    ],
)
def test_a_new_file_has_the_first_number_that_nothing_has(names: list[str], following: list[str]) -> None:
    """Files of others that have names of the copy, such as an index, keep them."""
    for name in names:
        Path("copy", name).write_bytes(b"theirs")
    made = CopyOutput(finished(), 9, HEAD)
    assert [made._next_name(kind) for kind in (WARC, ARC)] == following


def test_a_directory_with_the_name_of_a_list_is_of_somebody() -> None:
    Path("copy/copy-00000.tsv").mkdir()
    assert CopyOutput(finished(), 9, HEAD)._next_name(WARC) == "copy-00001.warc.gz"


def test_a_list_of_ours_without_its_archive_is_of_a_run_that_was_killed() -> None:
    write_list("copy-00000.warc.gz", A, archive=None)
    Path("copy/copy-00000.cdxj").write_bytes(b"ours")
    assert CopyOutput(finished(), 9, HEAD)._next_name(WARC) == "copy-00000.warc.gz"


@pytest.mark.parametrize(
    ("have", "names", "left"),
    [
        ("", "abcd", "abcd"),
        ("a", "abcd", "bcd"),
        ("d", "abcd", "abc"),
        ("bc", "abcd", "ad"),
        ("ac", "abcd", "bd"),
        ("abcd", "abcd", ""),
        ("x", "abcd", "abcd"),
    ],
)
@pytest.mark.parametrize("most", [1, 10_000])
@pytest.mark.parametrize("has_ranges", [True, False])
def test_records_that_are_there_are_left_out(
    have: str, names: str, left: str, most: int, has_ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the system copies no ranges, and in small pieces."""
    monkeypatch.setattr(output, "_COPY_PIECE", 7)
    if not has_ranges:
        monkeypatch.setattr(os, "copy_file_range", full)
    rows = [(f"{name}.warc.gz", 0, "-", f"http://{name}.com/", "no") for name in have]
    if have:
        write_list("old-00000.warc.gz", *rows)
    with CopyOutput(finished(), most, HEAD) as made:
        assert made.add(WARC, unit("u", names), part(*names, lines=True)) == len(left)
        made.finish()
    found = sorted(Path("copy").glob("copy-*.warc.gz"))
    assert len(found) == (len(left) if most == 1 else bool(left)) == made.files
    data = b"".join(path.read_bytes() for path in found)
    assert [letter for letter in "abcd" if letter.encode() * 10 in data] == list(left)
    assert made.bytes == len(data)
    assert Path("u").exists() == (not left)
    for path in found:
        text = path.read_bytes()
        rows_of = path.with_name(path.name.replace(".warc.gz", ".tsv")).read_text().splitlines()[1:]
        places = [(row[0], int(row.split("\t")[6]), int(row.split("\t")[7])) for row in rows_of]
        assert [text[at : at + size] for _, at, size in places] == [name.encode() * 10 for name, *_ in places]
        lines = path.with_name(path.name.replace(".warc.gz", ".cdxj")).read_text().splitlines()
        assert [line[4] for line in lines] == [name for name, *_ in places]
        assert all(f'"filename": "{path.name}"' in line for line in lines)
        assert all(f'"offset": "{at}"' in line for line, (_, at, _) in zip(lines, places, strict=True))


def test_the_index_of_a_file_is_sorted_and_has_each_line_once() -> None:
    with CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "ba"), part("b", "a", lines=True))
        Path("u").unlink()  # nothing is left to delete
        made.add(WARC, unit("v", "c"), part("c"))  # without a line
        made.finish()
    lines = Path("copy/copy-00000.cdxj").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines] == ["com,a)/", "com,b)/"]
    assert len(Path("copy/copy-00000.tsv").read_text().splitlines()) == 4


def test_records_of_each_kind_have_their_own_files() -> None:
    with CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "a"), part("a"))
        made.add(ARC, unit("v", "b"), part("b"))
        made.add(WARC, unit("w", "c"), part("c"))
        made.finish()
    assert sorted(path.name for path in Path("copy").glob("*.gz")) == [
        "copy-00000.warc.gz",
        "copy-00001.arc.gz",
    ]
    assert Path("copy/copy-00000.warc.gz").read_bytes().endswith(b"a" * 10 + b"c" * 10)
    assert Path("copy/copy-00001.arc.gz").read_bytes().endswith(b"b" * 10)
    texts = [gzip.decompress(path.read_bytes()[:-10]) for path in sorted(Path("copy").glob("*1.arc.gz"))]
    assert [text.partition(b" ")[0] for text in texts] == [b"filedesc://copy-00001.arc.gz"]
    assert made.files == 2
    assert not any(Path(name).exists() for name in "uvw")


def test_an_archive_gets_its_name_last_and_only_if_the_directory_is_ours_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    close = ExitStack.close

    def look(stack: Any) -> None:
        seen.append(sorted(path.name for path in Path("copy").iterdir() if "tmp" not in path.name))
        close(stack)

    with CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "a"), part("a"))
        with monkeypatch.context() as patch:
            patch.setattr(ExitStack, "close", look)
            made.finish()
    assert ["copy-00000.cdxj", "copy-00000.tsv"] in seen
    seen.clear()

    def taken() -> None:
        raise StoppedError("another run has taken this directory")

    monkeypatch.setattr(output, "check_held", taken)
    before = sorted(Path("copy").iterdir())
    with pytest.raises(StoppedError, match="another run"), CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "b"), part("b"))
        made.finish()
    assert sorted(Path("copy").iterdir()) == before


def test_what_is_not_finished_is_deleted_and_the_error_is_that_of_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(KeyError), CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "a"), part("a"))
        made.add(ARC, unit("v", "a"), part("a"))
        raise KeyError
    assert list(Path("copy").iterdir()) == []
    assert Path("u").exists() and Path("v").exists()


def test_a_full_disk_stops_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    with CopyOutput(finished(), 10_000, HEAD) as made:
        made.add(WARC, unit("u", "a"), part("a"))
        opened = made._open[WARC]
        monkeypatch.setattr(os, "copy_file_range", full)
        real = opened._file

        class Full:
            def write(self, data: bytes) -> int:
                return full()

            def flush(self) -> None:
                real.flush()

            def fileno(self) -> int:
                return real.fileno()

        opened._file = Full()  # type: ignore[assignment]
        with pytest.raises(StoppedError, match=r"copy-00000\.warc\.gz: .*No space left"):
            made.add(WARC, unit("v", "b"), part("b"))


def test_a_file_of_a_unit_that_cannot_be_read_stops_the_copy() -> None:
    with (
        CopyOutput(finished(), 10_000, HEAD) as made,
        pytest.raises(StoppedError, match=r"absent: .*No such file"),
    ):
        made.add(WARC, Path("absent"), part("a"))


@pytest.mark.parametrize(
    ("directory", "stem"),
    [("copy", "copy"), ("a b", "a_b"), ("_.", "copy"), ("x.-+_y", "x.-+_y"), ("é", "é"), (".hidden", "hidden"), ("s3://b/a$b/", "a_b")],
)  # fmt: skip
def test_files_have_the_name_of_the_directory_without_odd_characters(directory: str, stem: str) -> None:
    found = finished()
    found.target = Location(directory)
    assert CopyOutput(found, 9, HEAD)._next_name(WARC) == f"{stem}-00000.warc.gz"
