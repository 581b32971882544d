"""The options of `cdxmill lookup`: what they print, and how wrong ones are reported in one line."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.lookup import lookup, lookup_many
from cdxmill.formats.surt import surt
from cdxmill.search.query import Query

from .conftest import ALL, PAGES, line_of, lines_of


def run(capfd: pytest.CaptureFixture[str], *call: object, status: int = 0) -> str:
    assert main(["lookup", *map(str, call)]) == status
    out, error = capfd.readouterr()
    assert error == ""
    return out


def text(lines: list[bytes]) -> str:
    return b"".join(line + b"\n" for line in lines).decode()


def test_a_range_is_from_the_first_url_up_to_the_second(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = run(capfd, folder, "a.com/page/0398 b.com/page/0001", "--match-type", "range")
    assert found == text(lines_of("a.com")[-4:] + lines_of("b.com")[:2])


def test_times_filters_and_the_newest_come_together(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = [
        "--from",
        "20200102",
        "--to",
        "2020",
        "--filter",
        "=status:404",
        "--sort",
        "newest",
        "--limit",
        3,
    ]
    wanted = [line_of("b.com", page, 2) for page in (390, 380, 370)]
    assert run(capfd, folder, "b.com/*", *options) == text(wanted)
    assert run(capfd, folder, "b.com/*", *options, "--count") == "3\n"


@pytest.mark.parametrize(
    ("collapse", "left"), [("4", 79), ("14", 800), ("urlkey", 400), ("urlkey:15", 40), ("status", 79)]
)
def test_consecutive_lines_collapse(
    folder: Path, capfd: pytest.CaptureFixture[str], collapse: str, left: int
) -> None:
    lines = run(capfd, folder, "a.com/*", "--collapse", collapse).splitlines()
    assert abs(len(lines) - left) <= 1
    assert run(capfd, folder, "a.com/*", "--collapse", collapse, "--count") == f"{len(lines)}\n"


@pytest.mark.parametrize("url", ["*.com", "a.com/*", "http://a.com/page/0007", "http://absent.com/", "*.org"])
def test_counts_and_estimates_fit(folder: Path, capfd: pytest.CaptureFixture[str], url: str) -> None:
    exact = len(list(lookup(folder, url)))
    assert run(capfd, folder, url, "--count") == f"{exact}\n"
    told = json.loads(run(capfd, folder, url, "--estimate"))
    assert told["least"] <= exact <= told["most"]
    assert told["least"] <= told["lines"] <= told["most"]
    (folder / "cluster.json").unlink()
    told = json.loads(run(capfd, folder, url, "--estimate"))
    assert told["least"] <= exact
    assert told["most"] in (None, 0)


def test_a_count_in_time_counts_what_is_found(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, folder, "*.com", "--count", "--from", "20200102") == f"{2 * PAGES}\n"
    assert run(capfd, folder, "a.com/page/0001", "--count", "--from", "20200102") == "1\n"


@pytest.mark.parametrize("last", ["2", "20201", "2020013", "20200231", "20200131235960", "20200131235959999"])
def test_timestamps_may_be_partial_and_need_not_be_days_of_the_month(
    folder: Path, capfd: pytest.CaptureFixture[str], last: str
) -> None:
    found = run(capfd, folder, "a.com/page/0010", "--from", "20200000", "--to", last)
    assert found == text(lines_of("a.com")[20:22])


def test_csv_has_a_header_and_reads_back(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = run(capfd, folder, "a.com/page/0010", "--output", "csv", "--fl", "url,status,timestamp")
    assert list(csv.reader(io.StringIO(out))) == [
        ["url", "status", "timestamp"],
        ["http://a.com/page/0010", "404", "20200101000000"],
        ["http://a.com/page/0010", "404", "20200102000000"],
    ]


def test_outputs_have_the_fields(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def first(*options: str) -> str:
        return run(capfd, folder, "a.com/page/0010", "--limit", "1", *options).rstrip("\n")

    line = line_of("a.com", 10).decode()
    assert first() == first("--output", "cdxj") == first("--output", "text") == line
    assert json.loads(first("--output", "json")) == {
        "urlkey": "com,a)/page/0010",
        "timestamp": "20200101000000",
        "url": "http://a.com/page/0010",
        "status": "404",
    }
    cdx = "com,a)/page/0010 20200101000000 http://a.com/page/0010 - 404 - - - - - -"
    assert first("--output", "cdx") == cdx
    assert first("--fl", "status") == 'com,a)/page/0010 20200101000000 {"status": "404"}'
    assert first("--output", "text", "--fl", "status,none") == "404 -"


def urls() -> list[str]:
    source = random.Random(3)
    return [
        f"http://{source.choice(['a.com', 'b.com', 'x.com'])}/page/{source.randrange(500):04d}"
        for _ in range(300)
    ]


@pytest.mark.parametrize("order", ["random", "sorted"])
def test_many_urls_are_answered_in_their_order(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], order: str
) -> None:
    asked = urls() if order == "random" else sorted(urls(), key=lambda url: surt(url.encode()))
    (tmp_path / "urls").write_text("\n".join(asked) + "\n\n")
    wanted = [line for url in asked for line in ALL if line.startswith(surt(url.encode()) + b" ")]
    assert run(capfd, folder, "--input", tmp_path / "urls") == text(wanted)
    counts = run(capfd, folder, "--input", tmp_path / "urls", "--count").splitlines()
    assert [line.split("\t")[1] for line in counts] == asked
    assert sum(int(line.split("\t")[0]) for line in counts) == len(wanted)


def test_many_prefixes_are_answered_too(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"b.com/page/000*\r\n*.org\nhttp://a.com/page/0001"))
    monkeypatch.setattr("sys.stdin", stdin)
    wanted = [*lines_of("b.com")[:20], *lines_of("c.org"), *lines_of("a.com")[2:4]]
    assert run(capfd, folder, "--input", "-") == text(wanted)


def test_answers_that_do_not_fit_into_memory_are_looked_up_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.search.many._KEPT", 1000)
    monkeypatch.setattr("cdxmill.search.many.BATCH", 70)
    answers = [
        [line for lines in answer.lists for line in lines] for answer in lookup_many(folder, urls(), Query())
    ]
    assert answers == [list(lookup(folder, url)) for url in urls()]


def test_an_invalid_url_is_reported_and_the_others_are_answered(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "urls").write_text("http://a.com:port/\nhttp://a.com/page/0001\n")
    assert main(["lookup", str(folder), "--input", str(tmp_path / "urls")]) == 1
    out, error = capfd.readouterr()
    assert out == text(lines_of("a.com")[2:4])
    (line,) = error.splitlines()
    assert line.startswith("cdxmill: http://a.com:port/: not a URL that can be looked up")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["http://a.com:port/"], "not a URL that can be looked up"),
        (["*"], "not a URL that can be looked up"),
        (["a.com", "--match-type", "none"], "invalid match type"),
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
        (["a.com", "--collapse", "urlkey:x"], "collapse"),
        (["a.com", "--output", "xml"], "invalid --output"),
        (["a.com", "--limit", "0"], "--limit"),
        (["a.com", "--limit", "many"], "--limit"),
        (["a.com", "--page", "7"], "page 7 does not exist"),
        (["a.com", "--count", "--estimate"], "cannot be used together"),
        (["a.com", "--estimate", "--filter", "=status:200"], "--estimate cannot be used with"),
        (["a.com", "--shard-index-loc", "(", "x"], "regular expression"),
        (["a.com", "--input", "x"], "give either a URL or --input FILE"),
        ([], "give either a URL or --input FILE"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    folder: Path, capfd: pytest.CaptureFixture[str], options: list[str], part: str
) -> None:
    assert main(["lookup", str(folder), *options]) == 2
    out, error = capfd.readouterr()
    (line,) = error.splitlines()
    assert (out, part in line) == ("", True), line


def test_invalid_lines_are_an_error_if_their_fields_are_needed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for host, rest, part in (("a", '{"status": 200 0}', "JSON"), ("b", "x y", "neither CDXJ nor CDX")):
        url = f"http://{host}.com/"
        (tmp_path / host).write_text(f"com,{host})/ 2020 {rest}\n")
        shutil.rmtree(tmp_path / "C", ignore_errors=True)
        assert main(["zipnum", "-q", "-s", "1", "-o", str(tmp_path / "C"), str(tmp_path / host)]) == 0
        capfd.readouterr()
        assert main(["lookup", str(tmp_path / "C"), url]) == 0
        capfd.readouterr()
        for options in (["--filter", "=status:200"], ["--fl", "status"], ["--resolve-revisits"]):
            assert main(["lookup", str(tmp_path / "C"), url, *options]) == 1
            (line,) = capfd.readouterr().err.splitlines()
            assert part in line


def test_a_corrupt_block_is_reported_for_many_urls_too(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = sorted(folder.glob("cdx-*.gz"))[0]
    data = bytearray(shard.read_bytes())
    data[30:60] = bytes(30)
    shard.write_bytes(data)
    (tmp_path / "urls").write_text("".join(f"*.{host}\n" for host in ("a.com", "b.com", "c.com")))
    assert main(["lookup", str(folder), "--input", str(tmp_path / "urls")]) == 1
    assert "corrupt" in capsys.readouterr().err
