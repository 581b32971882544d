"""`cdxmill scan --captures`: each index line gives a row, or is reported."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..storage.fault_server import failing
from .test_scan import archive, rows, scan

Capsys = pytest.CaptureFixture[str]


def lines_of(path: Path, capfd: Capsys, *options: str) -> list[str]:
    """The index lines of an archive."""
    capfd.readouterr()
    assert main(["index", "-q", "-o", "-", *options, str(path)]) in (0, 1)
    return [line for line in capfd.readouterr().out.splitlines() if not line.startswith(" CDX")]


def scan_lines(directory: Path, lines: Sequence[str], path: Path, *options: str) -> int:
    (directory / "lines").write_text("".join(f"{line}\n" for line in lines))
    return scan("-o", directory / "out", "--captures", directory / "lines", *options, path)


@pytest.mark.parametrize("to", ["gz", "zst"])
def test_captures_of_an_index_are_scanned_and_no_others(
    to: str, samples: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = next(samples.rglob("iana.warc.gz"))
    if to == "zst":
        assert main(["recompress", "-q", "-o", str(tmp_path / "zst"), str(path)]) == 0
        path = tmp_path / "zst" / "iana.warc.zst"
    assert main(["index", "-q", "-o", "-", str(path)]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if " {" in line][5:25:4]
    (tmp_path / "lines").write_text(
        "\n".join([*lines, "nonsense", lines[0].replace("iana.warc", "other.warc")])
    )
    assert scan("-o", tmp_path / "out", "--captures", tmp_path / "lines", path) == 1
    expected = [json.loads(line[line.index("{") :]) for line in lines]
    assert sorted((row["url"], row["offset"]) for row in rows(tmp_path / "out")) == sorted(
        (one["url"], int(one["offset"])) for one in expected
    )
    errors = capfd.readouterr().err
    assert "lines: line 6 is not an index line" in errors
    assert "but no INPUT" in errors


def test_captures_that_are_neighbors_are_fetched_with_one_request(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    path = next(samples.rglob("iana.warc.gz"))
    assert main(["index", "-q", "-o", "-", str(path)]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if " {" in line]
    (tmp_path / "lines").write_text("\n".join(lines))
    with failing() as server:
        server.files["/iana.warc.gz"] = path.read_bytes()
        given: list[str | Path] = ["-p", "1", "--captures", tmp_path / "lines", "--extract", "url,offset"]
        assert scan("-o", tmp_path / "out", *given, f"{server.url}/iana.warc.gz") == 0
        requests = server.count
    expected = [json.loads(line[line.index("{") :]) for line in lines]
    assert sorted((row["url"], row["offset"]) for row in rows(tmp_path / "out")) == sorted(
        (one["url"], int(one["offset"])) for one in expected
    )
    assert requests < len(lines) / 10


@pytest.fixture(params=["plain", "gz", "zst"])
def pages(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An archive with four pages."""
    path = archive(tmp_path / "a.warc.gz", [b"<p>%d" % number for number in range(4)])
    if request.param == "zst":
        assert main(["recompress", "-q", "-o", str(tmp_path / "zst"), str(path)]) == 0
        return tmp_path / "zst" / "a.warc.zst"
    if request.param == "plain":
        plain = tmp_path / "a.warc"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return plain
    return path


def moved(line: str, name: str, by: int) -> str:
    """A line with another offset or length."""
    start, body = line.split("{", 1)
    fields = json.loads("{" + body)
    return f"{start}{json.dumps({**fields, name: str(int(fields[name]) + by)})}"


CHANGES: dict[str, tuple[Callable[[str], str], str]] = {
    "offset": (lambda line: moved(line, "offset", 5), "no record here: "),
    "shorter": (lambda line: moved(line, "length", -5), "no record here: "),
    "longer": (lambda line: moved(line, "length", 50), "no record here: "),
    "beyond the end": (lambda line: moved(line, "offset", 10**9), "no record here: the file ends before"),
    "far beyond the end": (
        lambda line: moved(line, "offset", 10**17),
        "no record here: the file ends before",
    ),
    "URL": (lambda line: line.replace("com/1", "com/9"), "the index line is of http://example.com/9"),
    "time": (lambda line: line.replace("2020010", "2021010"), "the index line is from 20210101000000"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_line_without_its_record_is_reported_and_the_others_are_scanned(
    change: str, pages: Path, tmp_path: Path, capfd: Capsys
) -> None:
    lines = lines_of(pages, capfd)
    changed, reason = CHANGES[change]
    assert scan_lines(tmp_path, [lines[0], changed(lines[1]), lines[2]], pages) == 1
    assert [row["url"] for row in rows(tmp_path / "out")] == ["http://example.com/0", "http://example.com/2"]
    errors = capfd.readouterr().err.splitlines()
    assert len(errors) == 1
    assert reason in errors[0]
    assert "index the archive again" in errors[0]


def test_a_line_without_a_url_is_compared_by_its_key(pages: Path, tmp_path: Path, capfd: Capsys) -> None:
    """Lines of a prefix B-tree have none."""
    short = [re.sub(r'"url": "[^"]*", ', "", line) for line in lines_of(pages, capfd)[:2]]
    assert not any('"url"' in line for line in short)
    other = short[1].replace(")/1 ", ")/other ", 1)
    assert scan_lines(tmp_path, [short[0], other], pages) == 1
    assert [row["url"] for row in rows(tmp_path / "out")] == ["http://example.com/0"]
    (told,) = capfd.readouterr().err.splitlines()
    assert "the record is of http://example.com/1, the index line is of com,example)/other" in told


@pytest.mark.parametrize(
    "options", [(), ("--cdx9",), ("--cdx11",), ("--records", "all"), ("--records", "all", "--post-append")]
)
@pytest.mark.parametrize(
    "name",
    [
        "example.arc",
        "example.warc.gz",
        "post-test.warc.gz",
        "example-url-agnostic-revisit.warc.gz",
        "httpbin-resource.warc.gz",
    ],
)
def test_each_line_of_an_index_gives_a_row(
    name: str, options: tuple[str, ...], pywb_warcs: Path, tmp_path: Path, capfd: Capsys
) -> None:
    lines = lines_of(pywb_warcs / name, capfd, *options)
    assert scan_lines(tmp_path, [*lines, *lines[::-1]], pywb_warcs / name) == 0
    assert len(rows(tmp_path / "out")) == len(lines)


def test_records_that_lines_name_are_written_as_they_are(pages: Path, tmp_path: Path, capfd: Capsys) -> None:
    lines = lines_of(pages, capfd)
    assert scan_lines(tmp_path, lines[1:3], pages, "--to", "warc.gz") == 0
    found = lines_of(tmp_path / "out" / "a.warc.gz", capfd)
    assert [line.split()[0] for line in found] == [line.split()[0] for line in lines[1:3]]


def test_the_time_of_written_records_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    path = archive(tmp_path / "a.warc.gz", [b"x"])
    assert scan("-o", tmp_path / "out", "--to", "warc.gz", path) == 0
    written = gzip.decompress((tmp_path / "out" / "a.warc.gz").read_bytes())
    assert b"WARC-Date: 2023-11-14T22:13:20Z" in written.partition(b"WARC-Type: response")[0]


def test_a_base_name_that_two_archives_have_is_not_guessed(tmp_path: Path, capfd: Capsys) -> None:
    for name in ("a", "b"):
        (tmp_path / "warcs" / name).mkdir(parents=True)
        archive(tmp_path / "warcs" / name / "x.warc.gz", [name.encode()])
    lines = lines_of(tmp_path / "warcs" / "a" / "x.warc.gz", capfd)
    assert scan_lines(tmp_path, lines, tmp_path / "warcs") == 1
    warcs = tmp_path / "warcs"
    reason = (
        f"x.warc.gz: is the base name of {warcs}/a/x.warc.gz and {warcs}/b/x.warc.gz: 1 index line skipped"
    )
    assert reason in capfd.readouterr().err
    named = [line.replace('"x.warc', '"b/x.warc') for line in lines]
    assert scan_lines(tmp_path, named, tmp_path / "warcs", "--extract", "text") == 0
    assert rows(tmp_path / "out") == [{"text": "b"}]


@pytest.mark.parametrize(
    ("lines", "status", "message"),
    [
        (b"", 2, "has no lines"),
        (b" CDX N b a m s k r M S V g\n\n", 2, "has no lines"),
        (gzip.compress(b"com,a)/ 2020 {}\n")[:-9], 1, "truncated"),
        (gzip.compress(bytes(17 << 20)), 1, "has a line of more than 16 MiB"),
    ],
)
def test_lines_that_cannot_be_read_end_the_scan(
    lines: bytes, status: int, message: str, tmp_path: Path, capfd: Capsys
) -> None:
    (tmp_path / "lines").write_bytes(lines)
    path = archive(tmp_path / "a.warc.gz", [b"x"])
    assert scan("-o", tmp_path / "out", "--captures", tmp_path / "lines", path) == status
    assert message in capfd.readouterr().err
    assert not [*(tmp_path / "out").rglob("*.jsonl*")]
    assert scan("-o", tmp_path / "none", "--captures", tmp_path / "absent", path) == 1
    assert not (tmp_path / "none").exists()


def test_lines_of_many_archives_that_are_no_input_are_counted(tmp_path: Path, capfd: Capsys) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"x"])
    (first,) = lines_of(path, capfd)
    others = [first.replace("a.warc.gz", f"{number}.warc.gz") for number in range(1005)]
    assert scan_lines(tmp_path, [*others, first], path) == 1
    assert len(rows(tmp_path / "out")) == 1
    listed = capfd.readouterr().err
    assert listed.count("is the archive of 1 index line, but no INPUT") == 10
    assert f"--captures {tmp_path}/lines: 990 more failures of this kind: is no INPUT" in listed
    assert "5 lines of other archives, which are no INPUT or not certain, skipped" in listed


def test_a_thousand_lines_that_match_nothing_are_listed(tmp_path: Path, capfd: Capsys) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"x"])
    (first,) = lines_of(path, capfd)
    others = [first.replace("com/0", f"com/{number}") for number in range(10, 1010)]
    assert scan_lines(tmp_path, [*others, first], path, "-p", "1") == 1
    listed = (tmp_path / "out" / "failures.tsv").read_text()
    assert listed.count("the index line is of http://example.com/") == 1000
    assert "without a record that matches" not in listed


def test_many_lines_that_match_nothing_are_counted(tmp_path: Path, capfd: Capsys) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"x", b"y"])
    (first, second) = lines_of(path, capfd)
    others = [first.replace("com/0", f"com/{number}") for number in range(10, 2500)]
    assert scan_lines(tmp_path, [*others, first, second], path, "-p", "1") == 1
    assert [row["url"] for row in rows(tmp_path / "out")] == ["http://example.com/0", "http://example.com/1"]
    listed = (tmp_path / "out" / "failures.tsv").read_text().splitlines()
    assert sum("the index line is of http://example.com/" in line for line in listed) == 1000
    assert "1490 more index lines without a record that matches" in listed[-1]
