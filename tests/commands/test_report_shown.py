"""What `cdxmill report` shows of a few captures: every number in the terminal and in the page."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.stages.report.page import format_page
from cdxmill.stages.report.plots import bars, mime_over_time, over_time
from cdxmill.stages.report.terminal import format_tables

OLD = [
    (
        "com,gone)/",
        "20190102030405",
        {"length": "1", "mime": "text/html", "status": "200", "filename": "a.gz"},
    )
]
NEW = [
    ("com,new)/", "-", {"length": "2000", "mime": "text/html", "status": "200", "filename": "a.gz", "languages": "eng"}),
    ("com,new)/x", "20200102030405", {"length": "30000", "mime": "image/png", "status": "404", "digest": "B", "filename": "b.gz"}),
    ("com,new)/x", "20200402030405", {"mime": "warc/revisit", "status": "-", "digest": "B", "filename": "b.gz"}),
    ("org,other)/", "20200402030406", {"length": "x", "mime": "image/png", "status": "200", "digest": "B", "filename": "b.gz"}),
]  # fmt: skip
SHOWN = """
Totals

 Captures                                         4
 URLs                                             3
 Bytes in archives                         31.2 KiB
 First and last capture    2020-01-02 to 2020-04-02
 Different contents                               1
 Duplicates, by digest                            1
 Bytes of duplicates                            0 B
 Revisits                                   1 (0 B)
 Without date                                     1
 Without length                                   2
 Invalid lines                                    1
 Failures of this report                          1

Registered domains

 2 of 2      captures   URLs      bytes
 ──────────────────────────────────────
 new.com            3      2   31.2 KiB
 other.org          1      1        0 B

Hosts

 2 of 2      captures   URLs      bytes
 ──────────────────────────────────────
 new.com            3      2   31.2 KiB
 other.org          1      1        0 B

Top-level domains

 2 of 2   captures   URLs      bytes
 ───────────────────────────────────
 com             3      2   31.2 KiB
 org             1      1        0 B

MIME types

 3 of 3         captures   URLs      bytes
 ─────────────────────────────────────────
 image/png             2      2   29.3 KiB
 text/html             1      1    2.0 KiB
 warc/revisit          1      1        0 B

Statuses

 2 of 2   captures   URLs      bytes
 ───────────────────────────────────
 200             2      2    2.0 KiB
 404             1      1   29.3 KiB
 -               1      1        0 B

Languages

 1 of 1   captures   URLs      bytes
 ───────────────────────────────────
 -               3      2   29.3 KiB
 eng             1      1    2.0 KiB

Years

 1 of 1   captures   URLs      bytes
 ───────────────────────────────────
 -               1      1    2.0 KiB
 2020            3      2   29.3 KiB

Archives

 2 of 2   captures   URLs      bytes
 ───────────────────────────────────
 b.gz            3      2   29.3 KiB
 a.gz            1      1    2.0 KiB

Largest records

 URL             MIME type      bytes
 ────────────────────────────────────
 http://a.com/   image/png   29.3 KiB
 http://a.com/   text/html    2.0 KiB

Shards and files

 1 of 1     captures   blocks   bytes
 ────────────────────────────────────
 new.cdxj          4        0     0 B

Compared with old.cdxj

                   before      now   difference
 ──────────────────────────────────────────────
 captures               1        4           +3
 urls                   1        3           +2
 bytes                  1   32,000      +31,999
 revisits               0        1           +1
 revisit bytes          0        0           +0
 digests                0        1           +1
 duplicates             0        1           +1
 duplicate bytes        0        0           +0

Registered domains: added

             before   now
 ────────────────────────
 new.com          0     3
 other.org        0     1

Registered domains: gone

            before   now
 ───────────────────────
 gone.com        1     0

Hosts: added

             before   now
 ────────────────────────
 new.com          0     3
 other.org        0     1

Hosts: gone

            before   now
 ───────────────────────
 gone.com        1     0

MIME types: added

                before   now
 ───────────────────────────
 image/png           0     2
 warc/revisit        0     1

Statuses: added

       before   now
 ──────────────────
 404        0     1
 -          0     1

Statuses: changed

       before   now
 ──────────────────
 200        1     2

Languages: added

       before   now
 ──────────────────
 eng        0     1

Languages: changed

     before   now
 ────────────────
 -        1     3

Years: added

        before   now
 ───────────────────
 -           0     1
 2020        0     3

Years: gone

        before   now
 ───────────────────
 2019        1     0

Months: added

          before   now
 ─────────────────────
 -             0     1
 202001        0     1
 202004        0     2

Months: gone

          before   now
 ─────────────────────
 201901        1     0

Archives: added

        before   now
 ───────────────────
 b.gz        0     3

"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The report of new.cdxj, which has an invalid line, compared with old.cdxj."""
    monkeypatch.chdir(tmp_path)
    for name, captures in (("old", OLD), ("new", NEW)):
        lines = [
            f"{key} {time} {json.dumps({'url': 'http://a.com/', **fields})}\n"
            for key, time, fields in captures
        ]
        Path(f"{name}.cdxj").write_text("".join(lines))
    with Path("new.cdxj").open("a") as file:
        file.write('org,other)/ 20210101000000 {"mime": }\n')
    assert main(["report", "-q", "new.cdxj", "--compare", "old.cdxj", "--json", "report.json"]) == 1
    found: dict[str, Any] = json.loads(Path("report.json").read_text())
    return found


def test_the_terminal_shows_every_table(report: dict[str, Any]) -> None:
    assert format_tables(report, 90) == SHOWN.removeprefix("\n")


def sections(page: bytes) -> dict[str, list[str]]:
    """The rows of the tables of a page, by their titles."""
    found = {}
    for part in page.decode().split("<section")[1:]:
        title, _, content = part.partition("<h2>")[2].partition("</h2>")
        rows = re.findall(r"<tr>(.*?)</tr>", content.partition("<tbody>")[2])
        found[title] = [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in rows]
    return found


def test_the_page_shows_the_same_rows(report: dict[str, Any]) -> None:
    found = sections(format_page(report))
    parts = SHOWN.strip().split("\n\n")
    tables = [(title.strip(), part) for title, part in pairwise(parts) if "──" in part]
    assert len(tables) > 20
    for title, part in tables:
        rows = [" ".join(row.split()).replace(" +", " ") for row in part.splitlines()[2:]]
        assert found[title] == rows, title
    assert [title for title, rows in found.items() if not rows] == [
        "Captures over time",
        "Hosts with the most captures",
        "MIME types over time",
        "What this report could not read",
    ]


def test_the_page_has_failures_estimates_and_the_rest_of_long_tables(report: dict[str, Any]) -> None:
    text = re.sub("<[^>]*>", " ", format_page(report).decode())
    assert "1 of 1" in text
    rows = [{"name": f"h{n:03d}", "captures": 9, "urls": None, "bytes": 1} for n in range(201)]
    report["by"]["host"] |= {"rows": rows, "distinct": 9999, "distinct_error": 0.01, "captures_error": 1234}
    report["failures"] = {"number": 1000, "first": [f"file{n:03d}: bad" for n in range(60)]}
    page = format_page(report)
    found = sections(page)["Hosts"]
    assert (found[0], found[-1], len(found)) == ("h000 9 1 B", "h199 9 1 B", 200)
    text = page.decode()
    assert "200 of about 9,999; estimates, wrong by at most 1,234 captures" in text
    assert "On paper: the first 40 rows." in text
    assert (text.count("<li>file"), "50 of 1,000" in text) == (50, True)
    shown = format_tables(report, 90)
    assert "10 of about 9,999   captures   URLs   bytes" in shown
    assert re.search(r"^ h009 +9 +1 B$", shown, re.M)
    assert "h010" not in shown
    assert "Failures of this report" in shown
    assert "1,000" in shown


def counted(**captures: int) -> dict[str, Any]:
    return {"rows": [{"name": name[1:], "captures": count} for name, count in captures.items()]}


def drawn(plot: str) -> list[tuple[str, ...]]:
    """The bars of a plot: place, top, width, height, color and title."""
    pattern = (
        r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)" fill="var\(--c(\d)\)"><title>(.*?)</title>'
    )
    return re.findall(pattern, plot)


def labels(plot: str) -> list[str]:
    return re.findall(r"<span>(.*?)</span>", plot)


def test_bars_are_as_high_as_their_captures() -> None:
    plot = over_time({"month": counted(_202011=1, _202102=4)})
    assert drawn(plot) == [
        ("0.00", "75.00", "215.00", "25.00", "0", "2020-11: 1"),
        ("750.00", "0.00", "215.00", "100.00", "0", "2021-02: 4"),
    ]
    assert labels(plot) == ["2020-11", "2021-01", "2021-02"]
    assert "Highest bar: 4 captures" in plot
    assert "max-width:440px" in plot
    assert labels(over_time({"month": counted(_202012=1, _202101=1)})) == ["2020-12", "2021-01"]


def test_a_long_time_is_shown_in_years_and_a_very_long_one_with_gaps() -> None:
    def plot(first: int, last: int) -> str:
        months, years = counted(**{f"_{first}": 1, f"_{last}": 1}), {f"_{first}"[:5]: 1, f"_{last}"[:5]: 1}
        return over_time({"month": months, "year": counted(**years)})

    assert labels(plot(202001, 202212))[::2] == ["2020-01", "2022-12"]
    assert labels(plot(202001, 202301)) == ["2020", "2022", "2023"]
    assert "max-width:8800px" in plot(192001, 199901)
    assert labels(plot(192001, 200001)) == ["1920", "2000"]


def test_mime_types_are_stacked_and_the_rare_ones_joined() -> None:
    mimes = counted(**{f"_{name}": 9 - number for number, name in enumerate("abcdefgh")})
    groups = counted(_202001a=2, _202001b=1, _202001g=1, _202001h=3)
    plot = mime_over_time({"month": counted(_202001=7), "mime": mimes, "mime_by_month": groups})
    assert [bar[1:] for bar in drawn(plot)] == [
        ("71.43", "860.00", "28.57", "0", "2020-01: 2 a"),
        ("57.14", "860.00", "14.29", "1", "2020-01: 1 b"),
        ("0.00", "860.00", "57.14", "6", "2020-01: 4 other"),
    ]
    assert re.findall(r"</i>(.*?)</li>", plot) == [*"abcdef", "other"]
    years = {"year": counted(_2020=7, _2023=1), "month": counted(_202001=7, _202301=1)}
    plot = mime_over_time({**years, "mime": mimes, "mime_by_month": groups})
    assert [bar[5] for bar in drawn(plot)] == ["2020: 2 a", "2020: 1 b", "2020: 4 other"]


def test_the_longest_bar_is_that_of_most_captures() -> None:
    assert re.findall(r"width:(.*?)%", bars(counted(_a=3, _b=1)["rows"])) == ["100.0", "33.3"]
    name = "x" * 121
    assert "x" * 119 + "…<" in bars(counted(**{f"_{name}": 0})["rows"])
    assert "x" * 120 + "<" in bars(counted(**{f"_{name[:120]}": 0})["rows"])
