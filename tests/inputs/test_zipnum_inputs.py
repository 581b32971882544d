"""What `zipnum` refuses, and what a damaged file costs: its own lines, and no line of another."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..material.cdx_files import as_text, cdxj, many_lines, sort_unique, write_gzip, write_plain
from ..material.clusters import check_cluster, published

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

CDX11 = b"com,a)/ 2020 http://a.com/ text/html 200 AAAA - - 17 5 a.warc.gz"
CDX9 = b"com,a)/ 2020 http://a.com/ text/html 200 AAAA - 5 a.warc.gz"
CDX6 = b"com,a)/ 2020 http://a.com/ 17 5 a.warc.gz"


def refused(run_cdxmill: RunCdxmill, *args: str | Path) -> str:
    """The one line of a usage error."""
    done = run_cdxmill(*args)
    assert done.returncode == 2, done.stderr
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.mark.parametrize(
    ("first", "second"), [(cdxj("com,a)/"), CDX11), (CDX11, CDX9), (CDX9, cdxj("com,a)/")), (CDX6, CDX11)]
)
def test_a_mixture_is_refused_with_two_files_of_it(
    first: bytes, second: bytes, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    good = [write_plain(tmp_path / f"{number}.cdx", [b" CDX", b"", first]) for number in range(3)]
    other = write_gzip(tmp_path / "other.cdx.gz", [second])
    line = refused(run_cdxmill, "zipnum", "-o", tmp_path / "C", "-s", "2", *good, other, good[0])
    assert str(good[0]) in line
    assert str(other) in line
    assert not (tmp_path / "C").exists()


def test_files_without_lines_mix_with_any(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    headers = write_plain(tmp_path / "h.cdx", [b" CDX N b a m s k r M S V g"])
    empty = write_gzip(tmp_path / "e.cdx.gz", [])
    lines = write_plain(tmp_path / "l.cdx", [cdxj("com,a)/")])
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "1", headers, empty, lines)
    assert done.returncode == 0
    check_cluster(tmp_path / "C", sort_unique([lines]))


@pytest.mark.parametrize("line", [CDX11, CDX9, cdxj("com,a)/")])
def test_convert_refuses_other_lines_than_of_six_fields(
    line: bytes, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdx", [line])
    assert "6 fields" in refused(run_cdxmill, "zipnum", "-o", tmp_path / "C", "-s", "2", "--convert", path)


def test_a_file_with_a_line_that_cannot_be_converted_is_named(
    run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    bad = write_plain(tmp_path / "bad.cdx", [CDX6, b"com,b)/ 2020 http://b.com/a page 17 5 b.warc.gz"])
    good = write_plain(tmp_path / "good.cdx", [CDX6])
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "1", "--convert", bad, good)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(
        f"{bad}: line 2 is CDX with 7 fields, but the lines before are CDX with 6 fields: "
    )


@pytest.mark.parametrize(
    ("points", "shards", "what"),
    [
        (b"a\nb\n", "2", "which gives 3 shards"),
        (b"b\na\n", None, "must increase"),
        (b"a\na\n", None, "must increase"),
        (b"SEQ\x06", None, "truncated"),
        (b"SEQ\x05 and so on", None, "version 6"),
    ],
)
def test_split_files_that_do_not_fit_are_refused(
    points: bytes, shards: str | None, what: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    (tmp_path / "splits").write_bytes(points)
    path = write_plain(tmp_path / "a.cdx", [cdxj("com,a)/")])
    options = ["-s", shards] if shards else []
    line = refused(
        run_cdxmill, "zipnum", "-o", tmp_path / "C", "--splits", tmp_path / "splits", *options, path
    )
    assert str(tmp_path / "splits") in line
    assert what in line


@pytest.mark.parametrize(
    "call",
    [
        "zipnum -o OUT -s 0 CDX",
        "zipnum -o OUT -s two CDX",
        "zipnum -o OUT -s 2 --numlines 0 CDX",
        "zipnum -o OUT -s 2 --compressor bzip2 CDX",
        "zipnum -o OUT -s 2 --compressor zlib --level 12 CDX",
        "zipnum -o OUT --splits absent CDX",
        "zipnum -o OUT --splits . CDX",
        "zipnum -s 2 CDX",
        "zipnum -o OUT -s 2",
        "zipnum -o OUT -s 2 --nonsense CDX",
        "sample -o OUT CDX",
        "sample -o OUT -s 0 CDX",
    ],
)
def test_wrong_options_are_told_in_one_line_before_any_work(
    call: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    path, out = write_plain(tmp_path / "a.cdx", [cdxj("com,a)/")]), tmp_path / "C"
    words = call.replace("OUT", str(out)).replace("CDX", str(path)).split()
    assert refused(run_cdxmill, *words).startswith("cdxmill: ")
    assert not out.exists()


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def without_trailer(data: bytes) -> bytes:
    return data[:-5]


def one_byte(data: bytes) -> bytes:
    return data[:1]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :]


def flipped_magic(data: bytes) -> bytes:
    return bytes([data[0] ^ 4]) + data[1:]


def flipped_checksum(data: bytes) -> bytes:
    return data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]


def with_garbage(data: bytes) -> bytes:
    return data + b"garbage"


@pytest.mark.parametrize(
    "damage", [cut, without_trailer, one_byte, flipped, flipped_magic, flipped_checksum, with_garbage]
)
@pytest.mark.parametrize("members", [1, 20])
def test_a_damaged_file_contributes_no_line_and_is_named(
    damage: object, members: int, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    assert callable(damage)
    lines = many_lines(4000)
    bad = write_gzip(tmp_path / "b.cdx.gz", lines[1000:3000], members)
    bad.write_bytes(damage(bad.read_bytes()))
    good = [write_gzip(tmp_path / "a.cdx.gz", lines[:1500], 2), write_plain(tmp_path / "c.cdx", lines[2500:])]
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "3", good[0], bad, good[1])
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"{bad}: ")
    assert "none of its lines are in the cluster" in line
    check_cluster(tmp_path / "C", sort_unique(good))


def test_a_damaged_file_does_not_move_the_split_points(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    good = write_plain(tmp_path / "a.cdx", many_lines(9000))
    bad = write_gzip(
        tmp_path / "b.cdx.gz", [cdxj(f"zzz,{number:05d})/{'x' * 200}") for number in range(9000)]
    )
    bad.write_bytes(without_trailer(bad.read_bytes()))
    for name, inputs, status in (("alone", [good], 0), ("both", [bad, good], 1)):
        assert run_cdxmill("zipnum", "-o", tmp_path / name, "-s", "5", *inputs).returncode == status
        assert run_cdxmill("sample", "-o", tmp_path / f"{name}.txt", "-s", "5", *inputs).returncode == status
    assert published(tmp_path / "alone") == published(tmp_path / "both")
    assert (tmp_path / "alone.txt").read_bytes() == (tmp_path / "both.txt").read_bytes()


def test_absent_and_unreadable_files_are_named_and_cost_nothing_else(
    run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    good = write_plain(tmp_path / "a.cdx", [cdxj("com,a)/")])
    directory = tmp_path / "folder.cdx.d"
    directory.mkdir()
    (tmp_path / "link.cdx").symlink_to("nowhere")
    bad = [tmp_path / "absent.cdx", tmp_path / "*.cdxj", tmp_path / "link.cdx"]
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "1", *bad, directory, good)
    assert done.returncode == 1
    lines = done.stderr.decode().splitlines()
    assert {line.split(": ")[0] for line in lines} == set(map(str, [*bad, directory]))
    assert f"{bad[1]}: no file matches; check the pattern" in lines
    check_cluster(tmp_path / "C", sort_unique([good]))


def test_files_directories_and_globs_are_taken_alike(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    deep = tmp_path / "in/deep"
    deep.mkdir(parents=True)
    lines = many_lines(40)
    paths = [
        write_plain(tmp_path / "in/a.cdx", lines[:10]),
        write_gzip(deep / "b.CDX.gz", lines[10:20]),
        write_plain(deep / "c.cdxj", lines[20:30]),
        write_gzip(deep / "d.cdxj.gz", lines[30:]),
    ]
    write_plain(deep / "notes.txt", [b"no cdx"])
    (deep / "e.warc.gz").write_bytes(gzip.compress(b"no cdx"))
    for name, named in (
        ("directory", [tmp_path / "in"]),
        ("glob", [tmp_path / "in/**/*.c*", tmp_path / "in/deep/b.CDX.gz"]),
        ("url", [(tmp_path / "in").as_uri() + "/**/*.c*", (tmp_path / "in/deep/b.CDX.gz").as_uri()]),
    ):
        done = run_cdxmill("zipnum", "-o", tmp_path / name, "-s", "1", *named)
        assert done.returncode == 0, done.stderr
        check_cluster(tmp_path / name, sort_unique(paths))


def test_a_file_that_is_named_twice_counts_once(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    path = write_plain(tmp_path / "a.cdx", many_lines(100))
    run_cdxmill("zipnum", "-o", tmp_path / "C", "-s", "2", path, path)
    check_cluster(tmp_path / "C", sort_unique([path]))


def test_a_cluster_that_cannot_be_written_is_told_in_one_line(
    run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdx", [cdxj("com,a)/")])
    for out, status, what in (
        (path, 2, ": is not a directory"),
        (path / "C", 2, f": {path} is not a directory"),
    ):
        done = run_cdxmill("zipnum", "-q", "-o", out, "-s", "1", path)
        assert done.returncode == status
        (line,) = done.stderr.decode().splitlines()
        assert f"{out}{what}" in line
    assert path.read_bytes() == as_text([cdxj("com,a)/")])
