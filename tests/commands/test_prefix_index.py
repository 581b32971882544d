"""prefix-index build and search: captures, pointers, clusters; what is not sorted or damaged is an error."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.prefix_index import build_tree
from cdxmill.errors import InputError, UsageError
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures

from ..material.cdx_files import write_gzip, write_plain
from ..material.clusters import write_raw_cluster
from ..material.processes import COMMAND
from ..material.trees import LINES, all_of, build, short


@pytest.mark.parametrize("block_size", [120, 1000, 65536])
def test_every_capture_of_a_cdxj_file_is_in_the_tree(tmp_path: Path, block_size: int) -> None:
    tree = build(
        tmp_path,
        write_gzip(tmp_path / "a.cdxj.gz", LINES),
        block_size=block_size,
    )
    assert list(map(short, all_of(tree))) == list(map(short, LINES))


def test_lines_of_other_forms_are_stored_too(tmp_path: Path) -> None:
    odd = [
        b'com,a)/1 20200101000000 {"filename": "a.gz", "offset": 7, "length": 9, "status": 200}',
        b'com,a)/2 20200101000000 {"filename": "a\\u00e9\\"b.gz", "offset": "007", "length": "9", "status": "abc"}',
        b'com,a)/3 - {"length": "9", "offset": "8", "filename": "a.gz", "more": {"status": "500"}}',
        b'com,a)/4 20200101000000 {"url": "http://a/\\"length\\": \\"1", "status": "404", "length": "9", "offset": "8", "filename": "a.gz"}',
        b'com,a)/5 20200101000000123 {"length": "9", "offset": "8", "filename": "a.gz", "status": "301"}',
    ]
    found = list(map(short, all_of(build(tmp_path, write_plain(tmp_path / "a.cdxj", odd)))))
    assert found == [
        ("com,a)/1", "20200101000000", "200", "9", "7", "a.gz"),
        ("com,a)/2", "20200101000000", "-", "9", "7", 'aé"b.gz'),
        ("com,a)/3", "-", "-", "9", "8", "a.gz"),
        ("com,a)/4", "20200101000000", "404", "9", "8", "a.gz"),
        ("com,a)/5", "20200101000000123", "301", "9", "8", "a.gz"),
    ]


def test_cdx_lines_are_stored(tmp_path: Path) -> None:
    header = b" CDX N b a m s k r M S V g"
    lines = [
        b"com,a)/%d 20200101000000 http://a.com/ text/html %b SHA - - 12 %d a.arc.gz"
        % (n, (b"200", b"-")[n], n)
        for n in (0, 1)
    ]
    tree = build(tmp_path, write_plain(tmp_path / "a.cdx", [header, *lines]))
    assert [short(one)[2:] for one in all_of(tree)] == [
        ("200", "12", "0", "a.arc.gz"),
        ("-", "12", "1", "a.arc.gz"),
    ]


def test_a_line_without_a_length_is_an_error(tmp_path: Path) -> None:
    lines = [b"com,a)/ 20200101000000 http://a.com/ text/html 200 SHA - 0 a.arc.gz"]
    with pytest.raises(InputError, match="no valid filename, offset and length"):
        build(tmp_path, write_plain(tmp_path / "a.cdx", lines))
    assert not (tmp_path / "x.tree").exists()


def test_a_cluster_and_files_are_merged(tmp_path: Path) -> None:
    cluster = write_raw_cluster(tmp_path / "C", LINES[::3], 50)
    files = [write_gzip(tmp_path / "a.cdxj.gz", LINES[1::3]), write_plain(tmp_path / "b.cdxj", LINES[2::3])]
    assert list(map(short, all_of(build(tmp_path, cluster, *files)))) == list(map(short, LINES))
    one = (tmp_path / "x.tree").read_bytes()
    (tmp_path / "x.tree").unlink()
    build(tmp_path, write_plain(tmp_path / "all.cdxj", LINES))
    assert (tmp_path / "x.tree").read_bytes() == one


def test_answers_are_those_of_lookup(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    cluster = write_raw_cluster(tmp_path / "C", LINES, 50)
    tree = build(tmp_path, cluster, block_size=2000)
    for query in (
        ["http://example.com/017"],
        ["http://example.com/none"],
        ["example.com/02*"],
        ["*.example.com"],
        ["*.com"],
        ["example.com", "--match-type", "host"],
        ["example.com/1 example.com/2", "--match-type", "range"],
        ["*.example.com", "--filter", "!=status:200"],
        ["example.com/*", "--from", "20200101000001", "--limit", "7"],
    ):
        assert main(["lookup", cluster, *query]) == 0
        wanted = capfdbinary.readouterr().out.splitlines()
        assert main(["prefix-index", "search", tree, *query]) == 0
        assert list(map(short, capfdbinary.readouterr().out.splitlines())) == list(map(short, wanted)), query
    assert wanted


def test_a_search_is_resumed_at_a_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    assert main(["prefix-index", "search", tree, "*.com", "--resume", "com,example)/298"]) == 0
    assert [one.split()[0] for one in capfd.readouterr().out.splitlines()] == [
        *["com,example)/298"] * 2,
        *["com,example)/299"] * 2,
        "com,example,blog)/",
        "com,example,blog)/a%20b",
        "com,examples)/",
    ]


def test_queries_come_from_a_file_and_output_has_the_forms_of_lookup(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    queries = write_plain(tmp_path / "queries", [b"http://example.org/", b"", b"blog.example.com/"])
    assert (
        main(["prefix-index", "search", tree, "-i", str(queries), "--output", "csv", "--fl", "urlkey,offset"])
        == 0
    )
    assert capfd.readouterr().out.splitlines() == [
        "urlkey,offset",
        '"org,example)/",0',
        '"com,example,blog)/",5',
    ]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_classic_pointers_are_numbers_or_hexadecimal(
    tmp_path: Path, end: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    values = 1346876860425, 1346903912043, 12, 7, 99
    names = (
        b"com.example.blog/a:http",
        b"com.example.blog/b c:http",
        b"com.example/:https",
        b"com.examples/:http",
    )
    texts = [
        b"%d %d %d %d %d" % values,
        b"%d\t%d\t%d\t%d\t%d" % values,
        b"%d %d 012 %d %d" % (values[:2] + values[3:]),
        struct.pack("<QQIQI", *values).hex().encode(),
    ]
    written = []
    for text in texts:
        (tmp_path / "a.tsv").write_bytes(b"\n".join(b"%b\t%b" % (name, text) for name in names) + end)
        written.append(Path(build(tmp_path, tmp_path / "a.tsv", replace=True)).read_bytes())
    assert len(set(written)) == 1
    assert (
        main(["prefix-index", "search", str(tmp_path / "x.tree"), "*.example.com", "--layout", "classic"])
        == 0
    )
    found = [json.loads(one.split(" ", 2)[2]) for one in capfd.readouterr().out.splitlines()]
    assert [one["url"] for one in found] == [
        "http://blog.example.com/a",
        "http://blog.example.com/b c",
        "https://example.com/",
    ]
    assert found[0]["filename"] == "parse-output/segment/1346876860425/1346903912043_12.arc.gz"
    for query in ("http://blog.example.com/a", "com.example.blog/a:http"):
        assert main(["prefix-index", "search", str(tmp_path / "x.tree"), query, "--layout", "classic"]) == 0
        assert len(capfd.readouterr().out.splitlines()) == 1


def test_any_layout_can_be_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write_plain(tmp_path / "a.tsv", [b"http://a.com/\t1 2", b"http://b.com/ x\t255 65535"])
    layout = "kind:u8,place:u16"
    tree = build(tmp_path, file, layout=layout, block_size=40)
    assert main(["prefix-index", "search", tree, "http*", "--layout", layout]) == 0
    assert capfd.readouterr().out == "http://a.com/\t1\t2\nhttp://b.com/ x\t255\t65535\n"
    with pytest.raises(InputError, match="place 65536 needs more than 16 bits"):
        build(
            tmp_path / "2",
            write_plain(tmp_path / "b.tsv", [b"a\t1 65536"]),
            layout=layout,
        )


def test_captures_come_from_rows_too(tmp_path: Path) -> None:
    rows = [
        b"\t".join(
            (key.encode(), name.encode(), offset.encode(), length.encode(), time.encode(), status.encode())
        )
        for key, time, status, length, offset, name in map(short, LINES)
    ]
    one = build(
        tmp_path / "rows",
        write_plain(tmp_path / "a.tsv", rows),
        layout="capture",
    )
    two = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    assert Path(one).read_bytes() == Path(two).read_bytes()


@pytest.mark.parametrize(
    ("lines", "layout", "reason"),
    [
        ([LINES[1], LINES[0]], None, "not sorted.*LC_ALL=C sort.*cdxmill zipnum"),
        ([b"b\t1 2 3 4 5", b"a\t1 2 3 4 5"], None, "not sorted.*LC_ALL=C sort.*cdxmill zipnum"),
        ([b"a\t1 2 3 4 5", b"b\0c\t1 2 3 4 5"], None, "NUL"),
        ([b"a\t1 2 3 4"], None, "5 numbers"),
        ([b"a\t1 2 3 4 5", b"b\t1 2 3 4", b"c\t1 2 3 4 5 6"], None, "5 numbers"),
        ([b"a\t1 2 3 4 5", b"2\t3\t4"], None, "5 numbers"),
        ([b"a\t1 2 3 4 5", b"b\t1 2 3 4 -5"], None, "5 numbers"),
        ([b"a\t1 2 3 4 5", b"b\t1 2 3 4 1e3"], None, "5 numbers"),
        ([b"a\t1 2 3 4 5", b"\t1 2 3 4 5"], None, "not sorted"),
        ([b"\t1 2 3 4 5"], None, "empty key"),
        ([b"a" * 70000 + b"\t1 2 3 4 5"], None, "longer than a block of 65536 bytes"),
        ([b"a\tx.gz\t1\t2"], "capture", "expected key, file name"),
        ([b"a\tx.gz\t1\t2\tthen\t200"], "capture", "expected a number"),
        ([b"a\tx.gz\t1\t2\t18446744073709551616\t200"], "capture", "more than 64 bits"),
        ([b"<html>"], None, "not a CDX or CDXJ line"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_an_error_and_nothing_is_written(
    tmp_path: Path, lines: list[bytes], layout: str | None, reason: str
) -> None:
    file = write_plain(tmp_path / "in.txt", lines)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=reason) as caught:
        build(tmp_path / "out", file, layout=layout)
    assert caught.value.path == str(file)
    assert list((tmp_path / "out").iterdir()) == []


def test_two_inputs_are_each_checked_to_be_sorted(tmp_path: Path) -> None:
    good, bad = write_plain(tmp_path / "a.cdxj", LINES), write_plain(tmp_path / "b.cdxj", LINES[::-1])
    with pytest.raises(InputError, match=r"b\.cdxj: not sorted"):
        build(tmp_path, good, bad)


def test_a_damaged_input_is_an_error(tmp_path: Path) -> None:
    file = write_gzip(tmp_path / "a.cdxj.gz", LINES)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InputError, match="truncated"):
        build(tmp_path, file)
    assert not (tmp_path / "x.tree").exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b" CDX N b a m s k r M S V g\n"])
def test_an_input_without_lines_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.cdx").write_bytes(content)
    with pytest.raises(InputError, match=r"empty|no lines"):
        build(tmp_path, tmp_path / "a.cdx")


def test_lines_of_two_kinds_are_not_mixed(tmp_path: Path) -> None:
    files = write_plain(tmp_path / "a.cdxj", LINES), write_plain(tmp_path / "b.tsv", [b"a\t1 2 3 4 5"])
    with pytest.raises(UsageError, match="others keys and pointers"):
        build(tmp_path, *files)
    with pytest.raises(UsageError, match="CDX lines have captures"):
        build(tmp_path, files[0], layout="classic")


def test_what_exists_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    file = write_plain(tmp_path / "a.cdxj", LINES)
    tree = Path(build(tmp_path, file))
    before = tree.read_bytes()
    with pytest.raises(UsageError, match="--replace"):
        build(tmp_path, write_plain(tmp_path / "b.cdxj", LINES[:1]))
    tree.unlink()
    build(tmp_path, file)
    build(tmp_path, file, replace=True)
    assert tree.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"a.cdxj", "b.cdxj", "x.tree"}


def test_an_input_is_never_the_output(tmp_path: Path) -> None:
    file = write_plain(tmp_path / "x.tree", LINES)
    with pytest.raises(UsageError, match="is an input"):
        build(tmp_path, file, replace=True)
    assert file.read_bytes().splitlines() == LINES
    with pytest.raises(UsageError, match="-o needs a file"):
        build_tree(TreeBuilding(file, output="-"), Failures(printed=False))


@pytest.mark.parametrize(
    "words", [["--filter", "=mime:text/html"], ["--fl", "url,digest"], ["--filter", "~digest:A"]]
)
def test_a_field_that_is_not_stored_is_an_error(
    tmp_path: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    assert main(["prefix-index", "search", tree, "*.com", *words]) == 2
    assert "is not stored; the fields are urlkey, timestamp" in capfd.readouterr().err


def test_an_invalid_query_of_many_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    queries = write_plain(tmp_path / "queries", [b"**", b"http://example.org/"])
    assert main(["prefix-index", "search", tree, "-i", str(queries)]) == 1
    out, told = capfd.readouterr()
    assert len(out.splitlines()) == len(told.splitlines()) == 1
    assert main(["prefix-index", "search", tree, "**"]) == 2
    assert main(["prefix-index", "search", tree, "*"]) == 0


def test_no_regular_file_is_no_tree(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").touch()
    for path in (tmp_path, tmp_path / "empty", Path("/dev/null"), write_plain(tmp_path / "a.cdxj", LINES)):
        assert main(["prefix-index", "search", str(path), "x", "--layout", "classic"]) == 1
        assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("is_named", [False, True])
def test_a_pipe_is_read_plain_or_gzip(pack: Callable[[bytes], bytes], is_named: bool, tmp_path: Path) -> None:
    data, pipe = pack(b"\n".join(LINES)), tmp_path / "pipe"
    os.mkfifo(pipe)
    tree = tmp_path / "index.tree"
    call: list[str | Path] = [COMMAND, "prefix-index", "build", "-q", "-o", tree]
    call += [pipe if is_named else "-"]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if is_named:
            pipe.write_bytes(data)
        assert process.communicate(None if is_named else data)[1] == b""
    assert process.returncode == 0
    assert list(map(short, all_of(str(tree)))) == list(map(short, LINES))


def test_a_pipe_that_is_truncated_or_given_twice_is_an_error(tmp_path: Path) -> None:
    cut = gzip.compress(b"\n".join(LINES))[:-20]
    for inputs, status, message in (
        (["-"], 1, b"standard input: the file is truncated inside a gzip member"),
        (["-", "-"], 2, b"-: was given twice, but it can be read only once"),
    ):
        call: list[str | Path] = [COMMAND, "prefix-index", "build", "-q", "-o", tmp_path / "index.tree"]
        done = subprocess.run([*call, *inputs], input=cut, capture_output=True, check=False)
        assert (done.returncode, message in done.stderr) == (status, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_layout_is_in_the_tree(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write_plain(tmp_path / "a.tsv", [b"http://a.com/\t1 2"])
    tree = build(tmp_path, file, layout="kind:u8,place:u16")
    assert main(["prefix-index", "search", tree, "http*"]) == 0
    assert capfd.readouterr().out == "http://a.com/\t1\t2\n"
    captures = write_plain(tmp_path / "a.cdxj", LINES)
    assert main(["prefix-index", "search", tree, "http*", "--layout", "classic"]) == 2
    assert "its layout is kind:u8,place:u16; leave --layout out" in capfd.readouterr().err
    assert build(tmp_path, captures, replace=True) == tree
    assert list(map(short, all_of(tree))) == list(map(short, LINES))
