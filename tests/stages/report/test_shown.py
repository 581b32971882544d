"""A report in the terminal and as a page: the limits of its tables, odd values, and the plots of long times."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cdxmill.stages.report.page import format_page
from cdxmill.stages.report.plots import bars, mime_over_time, over_time
from cdxmill.stages.report.terminal import TITLES, format_tables, part_shown, size_text, total_rows

TOTALS = {
    "captures": 7, "urls": 5, "urls_error": 0, "bytes": 2048, "first": "20200229000000", "last": "20200231000000", "digests": 3,
    "digests_error": 0, "duplicates": 2, "duplicate_bytes": 1024, "revisits": 1, "revisit_bytes": 0, "without_date": 0,
    "without_length": 0, "invalid_lines": 0,
}  # fmt: skip


def table(*names: str, **more: Any) -> dict[str, Any]:
    rows = [{"name": name, "captures": 3, "urls": 2, "bytes": 1} for name in names]
    return {"rows": rows, "distinct": len(names), "distinct_error": 0, "captures_error": 0, **more}


def report(**changes: Any) -> dict[str, Any]:
    by = {name: table() for name in (*TITLES, "month", "mime_by_month")}
    nothing: dict[str, Any] = {"number": 0, "first": []}
    return {
        "inputs": ["x"], "totals": dict(TOTALS), "by": by, "blocks": None, "largest": [], "shards": [], "clusters": [],
        "build_failures": nothing, "failures": nothing, **changes,
    }  # fmt: skip


def rows_of(found: dict[str, Any]) -> dict[str, str]:
    return dict(total_rows(found))


def test_totals_show_only_what_there_is() -> None:
    assert rows_of(report()) == {
        "Captures": "7", "URLs": "5", "Bytes in archives": "2.0 KiB", "First and last capture": "2020-02-29 to 20200231000000",
        "Different contents": "3", "Duplicates, by digest": "2", "Bytes of duplicates": "1.0 KiB", "Revisits": "1 (0 B)",
    }  # fmt: skip
    odd = dict.fromkeys(("without_date", "without_length", "invalid_lines"), 1000)
    found = rows_of(
        report(totals={**TOTALS, **odd, "urls_error": 0.0065, "digests_error": 0.01, "first": ""})
    )
    assert (found["Without date"], found["Without length"], found["Invalid lines"]) == ("1,000",) * 3
    assert found["URLs"] == "about 5 (standard error 0.65%)"
    assert found["Different contents"] == "about 3 (standard error 1.00%)"
    assert found["Duplicates, by digest"] == "about 2 (standard error 1.00%)"
    assert found["First and last capture"] == "- to 20200231000000"
    blocks = {"number": 1000, "least_bytes": 1, "median_bytes": 2, "most_bytes": 3072}
    failures = {"number": 2000, "first": ["a"]}
    clusters = [{"compact": ""}, {"compact": "cdxmill compact C"}, {"compact": ""}]
    assert len(total_rows(report(clusters=clusters))) == len(total_rows(report())) + 1
    found = rows_of(report(blocks=blocks, clusters=clusters, build_failures=failures))
    assert found["Blocks"] == "1,000; least, median, most: 1 B, 2 B, 3.0 KiB"
    assert found["When to compact"] == "cdxmill compact C"
    assert found["Failures when it was built"] == "2,000"
    assert "Failures of this report" not in found


@pytest.mark.parametrize(
    ("length", "text"),
    [("0", "0 B"), ("1024", "1.0 KiB"), ("", ""), ("-", "-"), ("1.5", "1.5"), ("\u00b2", "\u00b2"), ("9" * 19, "9" * 19)],
)  # fmt: skip
def test_a_length_that_is_no_size_is_shown_as_it_is(length: str, text: str) -> None:
    assert size_text(length) == text
    assert size_text("9" * 18) != "9" * 18
    largest = [{"url": "http://a.com/", "mime": "a/b", "length": length}]
    page = format_page(report(largest=largest)).decode()
    number = length if length.isdecimal() else "0"
    assert f'<td data-n="{int(number)}">{text}</td>' in page


def test_how_much_of_a_table_is_shown() -> None:
    rows = [{"name": name} for name in ("a", "-", "b")]
    assert part_shown({"distinct": 1234, "distinct_error": 0.1}, rows) == "2 of about 1,234"
    assert part_shown({"distinct": 2, "distinct_error": 0}, rows) == "2 of 2"


def test_the_terminal_shows_ten_rows_but_all_years() -> None:
    found = report()
    names = [f"n{number:02d}" for number in range(12)]
    found["by"] |= {"host": table(*names), "year": table(*(f"20{name[1:]}" for name in names))}
    found["largest"] = [
        {"url": f"http://{name}.com/" + "x" * 300, "mime": "a/b", "length": "1"} for name in names
    ]
    found["shards"] = [{"path": f"s{name}", "captures": 1000, "blocks": 2, "bytes": 3} for name in names]
    text = format_tables(found, 400)
    assert [name for name in names if re.search(rf"^ {name} ", text, re.M)] == names[:10]
    assert [name for name in names if f" 20{name[1:]} " in text] == names
    assert [name for name in names if f"http://{name}.com/" in text] == names[:10]
    assert [name for name in names if f" s{name} " in text] == names[:10]
    assert "x" * 185 in text  # of URLs, 200 characters
    assert "x" * 186 not in text
    assert "10 of 12" in text
    assert "1,000" in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(("width", "most"), [(10, 40), (40, 40), (41, 41), (120, 120)])
def test_a_terminal_that_is_too_narrow_gets_40_characters(width: int, most: int) -> None:
    found = report()
    found["by"]["host"] = table("x" * 300)
    assert (
        max(map(len, format_tables(found, width).splitlines())) == most - 1
    )  # the space at the end is not printed
    assert format_tables(found, width).count("x") == 300, "a name is folded, not cut"


def test_a_table_may_not_know_its_urls() -> None:
    found = report()
    found["by"]["host"] = table("a.com")
    assert re.search(r"^ a\.com +3 +2 +1 B$", format_tables(found, 100), re.M)
    found["by"]["host"]["rows"][0]["urls"] = None
    assert re.search(r"^ a\.com +3 +1 B$", format_tables(found, 100), re.M)


def change(name: str, before: int, captures: int) -> dict[str, Any]:
    return {"name": name, "before": before, "captures": captures}


def test_what_has_changed_is_cut_after_some_rows() -> None:
    names = [f"n{number:02d}" for number in range(60)]
    empty: dict[str, Any] = {"added": [], "gone": [], "changed": []}
    by = {"month": {**empty, "gone": [change("2020-01", 3, 0)]}, "host": {**empty, "added": [change(name, 0, 1000) for name in names]}}  # fmt: skip
    compared = {"with": ["a", "b"], "totals": {"revisit_bytes": {"before": 3000, "now": 1}}, "by": by}
    found = report(compared=compared)
    text = format_tables(found, 100)
    assert "Compared with a, b" in text
    assert re.search(r"revisit bytes +3,000 +1 +-2,999", text)
    assert text.count("1,000") == 10
    assert "Months: gone" in text
    assert "Hosts: gone" not in text
    page = format_page(found).decode()
    assert page.count('data-n="1000"') == 50
    assert '<td data-n="-2999">-2,999</td>' in page
    assert "Months: gone" in page
    assert "Compared with" not in format_page(report()).decode()


def sections(page: bytes) -> dict[str, str]:
    parts = [part.partition("</h2>") for part in page.decode().split("<h2>")[1:]]
    return {title: content for title, _, content in parts}


@pytest.mark.parametrize(("domains", "title"), [(1, "Hosts"), (2, "Hosts"), (3, "Registered domains")])
def test_a_collection_of_few_domains_shows_its_hosts(domains: int, title: str) -> None:
    found = report()
    found["by"] |= {"domain": table(*"abc"[:domains]), "host": table(*(f"h{number}" for number in range(30)))}
    shown = [name for name in sections(format_page(found)) if name.endswith("with the most captures")]
    assert shown == [f"{title} with the most captures"]


def test_the_plots_and_tables_of_a_page_have_limits() -> None:
    found, names = report(), [f"n{number:03d}" for number in range(210)]
    for name in ("domain", "status", "mime"):
        found["by"][name] = table(*names)
    found["shards"] = [{"path": name, "captures": 1, "blocks": 2, "bytes": 3} for name in names]
    found["build_failures"] = {"number": 70, "first": names[:3]}
    parts = sections(format_page(found))
    assert parts["Registered domains with the most captures"].count('class="bar"') == 18
    assert parts["Statuses"].count("<tr>") == 201
    page = format_page(found).decode()
    assert page.count('class="bar"') == 18 + 7 + 7
    assert parts["Shards and files"].count("<tr>") == 201
    assert "3 of 70" in parts["What failed when it was built"]
    assert "What this report could not read" not in parts
    assert "On paper" in parts["Statuses"]
    for rows, is_long in ((40, False), (41, True)):
        found["by"]["host"] = table(*names[:rows])
        assert ("On paper" in sections(format_page(found))["Hosts"]) == is_long
    found["by"]["host"]["rows"][0]["urls"] = None
    assert "URLs" not in sections(format_page(found))["Hosts"]
    assert "estimates" not in page


def test_long_totals_are_shown_smaller() -> None:
    for captures, kind in ((123456789, ""), (1234567890, ' class="long"')):
        page = format_page(report(totals={**TOTALS, "captures": captures})).decode()
        assert f"<div><b{kind}>{captures:,}</b><span>Captures</span></div>" in page


def counts(*names: str) -> dict[str, Any]:
    return {"rows": [{"name": name, "captures": 1} for name in names]}


def years(plot: str) -> list[str]:
    return re.findall(r"<span>(.*?)</span>", plot)


def bar_count(plot: str) -> int:
    return plot.count("<rect")


def test_times_of_any_length_have_a_plot() -> None:
    nothing = over_time({"month": counts("-"), "year": counts("-")})
    assert nothing == '<p class="note">No capture has a date.</p>'
    assert "No capture has a date" in mime_over_time({"month": counts(), "year": counts(), "mime": counts("a/b"), "mime_by_month": counts()})  # fmt: skip
    one = over_time({"month": counts("202001", "-"), "year": counts("2020", "-")})
    assert (years(one), bar_count(one)) == (["2020-01"], 1)
    many = [f"{year}" for year in range(1000, 1300)]
    long = over_time({"month": counts(*(f"{year}01" for year in many)), "year": counts(*many, "-")})
    assert (years(long), bar_count(long)) == (["1060", "1180", "1299"], 240)
    for last, names in ((2022, "202212"), (2023, "202301")):
        plot = over_time({"month": counts("202001", names), "year": counts("2020", f"{last}")})
        assert years(plot)[-1] == ("2022-12" if last == 2022 else "2023")
    far = over_time({"month": counts("000101", "999912"), "year": counts("0001", "9999")})
    assert (years(far), bar_count(far)) == (["0001", "9999"], 2)


def test_types_of_other_times_are_not_in_a_plot() -> None:
    by = {
        "month": counts("202001", "202003"),
        "mime": counts(*"abcdefgh"),
        "mime_by_month": counts("202001a", "202003h", "202003g", "209901a", "-a"),
    }
    plot = mime_over_time(by)
    assert re.findall(r"<title>(.*?)</title>", plot) == ["2020-01: 1 a", "2020-03: 2 other"]
    assert years(plot) == ["2020-01", "2020-02", "2020-03"]


def test_bars_without_captures_have_no_width() -> None:
    assert bars([]) == ""
    assert 'style="width:0.0%"' in bars([{"name": "a", "captures": 0}])
    assert "1,000" in bars([{"name": "<a>", "captures": 1000}])
    assert "&lt;a&gt;" in bars([{"name": "<a>", "captures": 1000}])


@pytest.mark.parametrize(("size", "end"), [(290, "x"), (291, "\u2026"), (400, "\u2026")])
def test_a_long_title_is_cut(size: int, end: str) -> None:
    page = format_page(
        report(inputs=["x" * size], failures={"number": 1, "first": ["y" * (size + 10)]})
    ).decode()
    for found in re.findall("<h1>(.*?)</h1>|<title>(Rep.*?)</title>|<li>(y.*?)</li>", page):
        assert (len("".join(found)), "".join(found)[-1].replace("y", "x")) == (300, end)
    assert page.count("<h1>") == page.count("<li>y") == 1
