"""The options of `cdxmill lookup`: what they print, and how wrong ones are reported in one line."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.formats.lines.surt import surt
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup, lookup_many

from ..material.clusters import write_raw_cluster
from .conftest import ALL, PAGES, line_of, lines_of


def run(capfd: pytest.CaptureFixture[str], *call: object, status: int = 0) -> str:
    assert main(["lookup", *map(str, call)]) == status
    out, error = capfd.readouterr()
    assert error == ""
    return out


def text(lines: list[bytes]) -> str:
    return b"".join(line + b"\n" for line in lines).decode()


def test_a_range_is_from_the_first_url_up_to_the_second(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = run(capfd, directory, "a.com/page/0398 b.com/page/0001", "--match-type", "range")
    assert found == text(lines_of("a.com")[-4:] + lines_of("b.com")[:2])


def test_a_directory_with_the_name_of_a_crawl_is_what_is_there(
    directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", "http://127.0.0.1:1")
    Path("CC-MAIN-2024-22").symlink_to(directory)
    assert run(capfd, "CC-MAIN-2024-22", "b.com/page/0001") == text(lines_of("b.com")[2:4])


def test_times_filters_and_the_newest_come_together(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    times, others = ["--from", "20200102", "--to", "2020"], ["--filter", "=status:404", "--sort", "newest"]
    options = [*times, *others, "--limit", 3]
    wanted = [line_of("b.com", page, 2) for page in (390, 380, 370)]
    assert run(capfd, directory, "b.com/*", *options) == text(wanted)
    assert run(capfd, directory, "b.com/*", *options, "--count") == "3\n"


@pytest.mark.parametrize("page", ["0", "1"])
def test_a_page_from_its_end_has_the_lines_of_that_page(
    directory: Path, capfd: pytest.CaptureFixture[str], page: str
) -> None:
    options = ["*.com", "--page-size", 2, "--page", page]
    lines = run(capfd, directory, *options).splitlines()
    assert run(capfd, directory, *options, "--sort", "reverse").splitlines() == lines[::-1] != []


@pytest.mark.parametrize(
    ("collapse", "left"), [("4", 79), ("14", 800), ("urlkey", 400), ("urlkey:15", 40), ("status", 79)]
)
def test_consecutive_lines_collapse(
    directory: Path, capfd: pytest.CaptureFixture[str], collapse: str, left: int
) -> None:
    lines = run(capfd, directory, "a.com/*", "--collapse", collapse).splitlines()
    assert abs(len(lines) - left) <= 1
    assert run(capfd, directory, "a.com/*", "--collapse", collapse, "--count") == f"{len(lines)}\n"


@pytest.mark.parametrize("url", ["*.com", "a.com/*", "http://a.com/page/0007", "http://absent.com/", "*.org"])
def test_counts_and_estimates_fit(directory: Path, capfd: pytest.CaptureFixture[str], url: str) -> None:
    exact = len(list(lookup(directory, url)))
    assert run(capfd, directory, url, "--count") == f"{exact}\n"
    told = json.loads(run(capfd, directory, url, "--estimate"))
    assert told["least"] <= exact <= told["most"]
    assert told["least"] <= told["lines"] <= told["most"]
    (directory / "cluster.json").unlink()
    told = json.loads(run(capfd, directory, url, "--estimate"))
    assert told["least"] <= exact
    assert told["most"] in (None, 0)


def test_a_count_in_time_counts_what_is_found(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, directory, "*.com", "--count", "--from", "20200102") == f"{2 * PAGES}\n"
    assert run(capfd, directory, "a.com/page/0001", "--count", "--from", "20200102") == "1\n"


@pytest.mark.parametrize("last", ["2", "20201", "2020013", "20200231", "20200131235960", "20200131235959999"])
def test_timestamps_may_be_partial_and_need_not_be_days_of_the_month(
    directory: Path, capfd: pytest.CaptureFixture[str], last: str
) -> None:
    found = run(capfd, directory, "a.com/page/0010", "--from", "20200000", "--to", last)
    assert found == text(lines_of("a.com")[20:22])


def test_csv_has_a_header_and_reads_back(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = run(capfd, directory, "a.com/page/0010", "--output", "csv", "--fl", "url,status,timestamp")
    assert list(csv.reader(io.StringIO(out))) == [
        ["url", "status", "timestamp"],
        ["http://a.com/page/0010", "404", "20200101000000"],
        ["http://a.com/page/0010", "404", "20200102000000"],
    ]


def test_outputs_have_the_fields(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def first(*options: str) -> str:
        return run(capfd, directory, "a.com/page/0010", "--limit", "1", *options).rstrip("\n")

    line = line_of("a.com", 10).decode()
    assert first() == first("--output", "cdxj") == line
    assert first("--output", "text") == "com,a)/page/0010 20200101000000 http://a.com/page/0010 404"
    assert json.loads(first("--output", "json")) == {
        "urlkey": "com,a)/page/0010",
        "timestamp": "20200101000000",
        "url": "http://a.com/page/0010",
        "status": "404",
    }
    cdx = "com,a)/page/0010 20200101000000 http://a.com/page/0010 - 404 - - - - - -"
    assert first("--output", "cdx") == cdx
    assert first("--fl", "status") == 'com,a)/page/0010 20200101000000 {"status": "404"}'
    assert first("--output", "text", "--fl", "status, digest") == "404 -"
    assert first("--output", "text", "--fl", "statuscode,original") == "404 http://a.com/page/0010"


def urls() -> list[str]:
    source = random.Random(3)
    return [
        f"http://{source.choice(['a.com', 'b.com', 'x.com'])}/page/{source.randrange(500):04d}"
        for _ in range(300)
    ]


@pytest.mark.parametrize("order", ["random", "sorted"])
def test_many_urls_are_answered_in_their_order(
    directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], order: str
) -> None:
    asked = urls() if order == "random" else sorted(urls(), key=lambda url: surt(url.encode()))
    (tmp_path / "urls").write_text("\n".join(asked) + "\n\n")
    wanted = [line for url in asked for line in ALL if line.startswith(surt(url.encode()) + b" ")]
    assert run(capfd, directory, "--input", tmp_path / "urls") == text(wanted)
    counts = run(capfd, directory, "--input", tmp_path / "urls", "--count").splitlines()
    assert [line.split("\t")[1] for line in counts] == asked
    assert sum(int(line.split("\t")[0]) for line in counts) == len(wanted)


def test_many_prefixes_are_answered_too(
    directory: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"b.com/page/000*\r\n*.org\nhttp://a.com/page/0001"))
    monkeypatch.setattr("sys.stdin", stdin)
    wanted = [*lines_of("b.com")[:20], *lines_of("c.org"), *lines_of("a.com")[2:4]]
    assert run(capfd, directory, "--input", "-") == text(wanted)


def test_answers_that_do_not_fit_into_memory_are_looked_up_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.search.many._KEPT", 1000)
    monkeypatch.setattr("cdxmill.search.many.BATCH", 70)
    answers = [
        [line for lines in answer.lists for line in lines]
        for answer in lookup_many(directory, urls(), Query())
    ]
    assert answers == [list(lookup(directory, url)) for url in urls()]


def test_an_invalid_url_is_reported_and_the_others_are_answered(
    directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "urls").write_text("http://a.com:port/\nhttp://a.com/page/0001\n")
    assert main(["lookup", str(directory), "--input", str(tmp_path / "urls")]) == 1
    out, error = capfd.readouterr()
    assert out == text(lines_of("a.com")[2:4])
    (line,) = error.splitlines()
    assert line.startswith("cdxmill: http://a.com:port/: not a URL that can be looked up")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["http://a.com:port/"], "not a URL that can be looked up"),
        (["**"], "not a URL that can be looked up"),
        (
            ["a.com", "--match-type", "none"],
            "invalid --match-type 'none': expected one of exact, prefix, host",
        ),
        (["a.com", "--match-type", "range"], "two URLs separated by a space"),
        (["a.com b.com c.com", "--match-type", "range"], "two URLs separated by a space"),
        (["b.com a.com", "--match-type", "range"], "ends before it begins"),
        (["a.com", "--from", "yesterday"], "invalid timestamp"),
        (["a.com", "--to", "2020-01-01"], "invalid timestamp"),
        (["a.com", "--from", "202013"], "invalid timestamp"),
        (["a.com", "--to", "20200132"], "invalid timestamp"),
        (["a.com", "--to", "20200101246060"], "invalid timestamp"),
        (["a.com", "--to", "\u0662\u0660\u0662\u0660"], "invalid timestamp"),
        (["a.com", "--from", "2021", "--to", "2020"], "ends before it begins"),
        (["a.com", "--closest", "x"], "invalid timestamp"),
        (["a.com", "--sort", "closest"], "needs --closest"),
        (["a.com", "--sort", "up"], "invalid --sort"),
        (["a.com", "--filter", "~status:["], "not a regular expression"),
        (["a.com", "--filter", "!="], "it is empty"),
        (["a.com", "--filter", "status=200"], "expected =status:200"),
        (["a.com", "--filter", "status!=200"], "expected !=status:200"),
        (["a.com", "--filter", "=statuscode=200"], "expected =statuscode:200"),
        (["a.com", "--filter", "!mime~text/.*"], "expected ~mime:text/.*"),
        (["a.com", "--filter", "=staus:200"], "unknown field 'staus'"),
        (["a.com", "--filter", "!staus:200"], "known are urlkey, timestamp, url, mime, status,"),
        (["a.com", "--fl", "url,staus"], "unknown field 'staus'"),
        (["a.com", "--fl", "url,,status"], "unknown field ''"),
        (["a.com", "--collapse", "staus:2"], "unknown field 'staus'"),
        (["a.com", "--collapse", "staus", "--count"], "unknown field 'staus'"),
        (["absent.org", "--fl", "staus"], "unknown field 'staus'"),
        (["a.com", "--limit", "-1"], "--limit"),
        (["a.com", "--page", "-1"], "--page"),
        (["a.com", "--page-size", "0"], "--page-size"),
        (["a.com", "--collapse", "urlkey:x"], "collapse"),
        (["a.com", "--output", "xml"], "invalid --output"),
        (["a.com", "--limit", "0"], "--limit"),
        (["a.com", "--limit", "many"], "--limit"),
        (["a.com", "--page", "7"], "page 7 does not exist"),
        (["a.com", "--match-type", "suffix"], "suffix"),
        (["b.com/*", "--estimate", "--from", "2020"], "--from and --to for a single URL only"),
        (["a.com", "--count", "--estimate"], "cannot be used together"),
        (
            ["a.com", "--estimate", "--filter", "=status:200"],
            "--filter and --estimate cannot be used together",
        ),
        (["a.com", "--shard-index-loc", "(", "x"], "regular expression"),
        (["a.com", "--input", "x"], "give either a URL or --input FILE"),
        ([], "give either a URL or --input FILE"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    directory: Path, capfd: pytest.CaptureFixture[str], options: list[str], part: str
) -> None:
    assert main(["lookup", str(directory), *options]) == 2
    out, error = capfd.readouterr()
    (line,) = error.splitlines()
    assert (out, part in line) == ("", True), line


@pytest.mark.parametrize("broken", ['{"status": 200', '{"status": %s}' % ("[" * 5000), "x y"])
def test_a_line_that_cannot_be_parsed_is_reported_and_the_others_are_printed(
    broken: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sound = [f'com,a)/ 202{year} {{"status": "{year}00"}}' for year in (0, 2)]
    write_raw_cluster(
        tmp_path / "C", [sound[0].encode(), f"com,a)/ 2021 {broken}".encode(), sound[1].encode()]
    )
    (tmp_path / "urls").write_text("http://a.com/\nhttp://a.com:port/\nhttp://a.com/\n")
    asked = ["lookup", str(tmp_path / "C")]
    assert main([*asked, "http://a.com/"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3
    for options in (
        ["--filter", "!=status:1"],
        ["--fl", "status"],
        ["--resolve-revisits"],
        ["--collapse", "4"],
    ):
        assert main([*asked, "http://a.com/", *options]) == 1
        out, err = capfd.readouterr()
        assert [line[:13] for line in out.splitlines()] == [line[:13] for line in sound], options
        (line,) = err.splitlines()
        assert line.endswith("; the line is skipped")
        assert "internal" not in line
        assert main([*asked, "--input", str(tmp_path / "urls"), *options]) == 1
        out, err = capfd.readouterr()
        assert len(out.splitlines()) == 4
        assert "not a URL" in err
    assert main([*asked, "http://a.com/", "--filter", "!=status:1", "--count"]) == 1
    assert capfd.readouterr().out == "2\n"


@pytest.mark.parametrize(("number", "rest"), [(10, []), (11, ["cdxmill: 1 more such errors"])])
def test_lines_that_cannot_be_parsed_are_reported_each_up_to_ten(
    number: int, rest: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_raw_cluster(tmp_path / "C", [b"com,a)/ %d {" % year for year in range(2000, 2000 + number)])
    assert main(["lookup", str(tmp_path / "C"), "a.com", "--fl", "url"]) == 1
    assert capfd.readouterr().err.splitlines()[10:] == rest


def test_a_field_of_another_tool_is_known_if_the_cluster_has_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [b'com,a)/ 2020 {"url": "u", "access": "open"}', b'com,b)/ 2020 {"url": "u", "load_url": "x"}']
    write_raw_cluster(tmp_path / "C", lines, 1)
    for url, name in (("a.com", "access"), ("b.com", "access"), ("b.com", "load_url")):
        assert main(["lookup", str(tmp_path / "C"), url, "--fl", name]) == 0
    assert main(["lookup", str(tmp_path / "C"), "a.com", "--filter", "=acces:open"]) == 2
    assert (
        "truncated, method, requestBody, orig.length, orig.offset, orig.filename, access"
        in capfd.readouterr().err
    )


@pytest.mark.parametrize("output", ["cdxj", "json", "text", "cdx", "csv"])
def test_hostile_values_stay_in_their_line_and_their_field(
    output: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    values = ["a\nb\r\x1b[31m", 'a,"b', "\ud800", "\0", "=1+1", "{}"]
    lines = [
        b"com,a)/ 2020%04d " % number + json.dumps({"url": value, "status": 1e400, "x": [value]}).encode()
        for number, value in enumerate(values)
    ]
    write_raw_cluster(tmp_path / "C", [*lines, b'com,a)/ 20210000 {"url": "\xff\xc3", "n": 1e999}'])
    capfdbinary.readouterr()
    for options in (["--fl", "url,status"], ["--fl", "timestamp,url,x"], []):
        assert main(["lookup", str(tmp_path / "C"), "a.com", "--output", output, *options]) == 0
        out = capfdbinary.readouterr().out
        if output == "csv":
            rows = list(csv.DictReader(io.StringIO(out.decode("utf-8", "surrogateescape"), newline="")))
            assert [row["url"] for row in rows][:2] == values[:2]
            assert len(rows) == len(lines) + 1
            continue
        assert len(out.splitlines()) == len(lines) + 1
        assert not any(byte < 32 and byte != 10 for byte in out)
        if output == "json":
            for line in out.splitlines():
                json.loads(line, parse_constant=lambda name: pytest.fail(name))


def test_urls_of_any_bytes_are_answered_or_reported(
    directory: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    odd = [
        b"\0",
        b"a.com/\0",
        b"http://a.com/" + b"x" * (1 << 20),
        b"\xff\xfe",
        b"a b",
        b"http://[",
        b"*",
        b"%",
        b"\xc2\xa0",
    ]
    (tmp_path / "urls").write_bytes(b"\n\r\n".join([*odd, b"http://a.com/page/0001"]))
    for options in ([], ["--count"], ["--estimate"], ["--show-num-pages"], ["--match-type", "prefix"]):
        assert main(["lookup", str(directory), "--input", str(tmp_path / "urls"), *options]) == 1
        out, err = capfdbinary.readouterr()
        assert b"internal" not in err
        assert max(map(len, err.splitlines())) < 400
        assert len(out.splitlines()) >= 2
    for url in ("", " ", "\n", "a.com\nb.com", "x" * 100_000):
        assert main(["lookup", str(directory), url]) in (0, 2)
        assert b"internal" not in capfdbinary.readouterr().err


def test_a_corrupt_block_is_reported_for_many_urls_too(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = sorted(directory.glob("cdx-*.gz"))[0]
    data = bytearray(shard.read_bytes())
    data[30:60] = bytes(30)
    shard.write_bytes(data)
    (tmp_path / "urls").write_text("".join(f"*.{host}\n" for host in ("a.com", "b.com", "c.com")))
    assert main(["lookup", str(directory), "--input", str(tmp_path / "urls")]) == 1
    assert "corrupt" in capsys.readouterr().err


@pytest.mark.parametrize(
    "urls", [["a.com/page/0001", "c.org/page/0399"], ["c.org/page/0399", "a.com/page/0001"]]
)
@pytest.mark.parametrize("options", [[], ["--match-type", "prefix"]])
def test_a_corrupt_block_ends_only_the_answers_that_need_it(
    directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], urls: list[str], options: list[str]
) -> None:
    shard = sorted(directory.glob("cdx-*.gz"))[0]
    data = bytearray(shard.read_bytes())
    data[30:60] = bytes(30)
    shard.write_bytes(data)
    (tmp_path / "urls").write_text("".join(f"{url}\n" for url in [*urls, urls[0]]))
    assert main(["lookup", str(directory), "--input", str(tmp_path / "urls"), *options]) == 1
    out, err = capfd.readouterr()
    assert set(out.splitlines()) == {line.decode() for line in lines_of("c.org")[-2:]}
    assert all(
        "corrupt" in line and "page/0001: the answer is not complete" in line for line in err.splitlines()
    )
    assert len(err.splitlines()) == urls.count("a.com/page/0001") + (urls[0] == "a.com/page/0001")
    assert main(["lookup", str(directory), "--input", str(tmp_path / "urls"), *options, "--count"]) == 1
    out, err = capfd.readouterr()
    assert set(out.splitlines()) == {"2\tc.org/page/0399"}
    assert all("corrupt" in line and "page/0001: not counted" in line for line in err.splitlines())
