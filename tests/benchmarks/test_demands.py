"""The table of demands shows the measurements, and the plot draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bench import demands, plot
from bench.contenders import ROOT, Section, Tool
from bench.run import MARKS, write_markdown

FASTWARC = "FastWARC iteration, HTTP parsed"
Costs = dict[str, list[float]]


def costs(*wall: float) -> Costs:
    return {"cpu": list(wall), "wall": list(wall), "memory": [2.0**30] * len(wall)}


def rows(measured: dict[str, dict[str, Costs]]) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in demands.passage(measured).rows}


def test_ratios_are_of_the_same_run_and_their_median_counts() -> None:
    measured = {
        "web": {
            "cdxmill": costs(1, 2, 4),
            "pywb cdx-indexer -j -s": costs(5, 8, 16),
            "cdxj-indexer -s": costs(2, 4, 8),
            FASTWARC: costs(0.5, 1, 2),
        }
    }
    found = rows(measured)
    assert found["index: rate relative to pywb cdx-indexer"] == ["at least 4", "4.00", "4.00-5.00", "yes"]
    assert found["index: rate relative to cdxj-indexer"] == ["at least 4", "2.00", "2.00-2.00", "NO"]
    assert found["index: CPU relative to FastWARC iteration with HTTP"] == [
        "at most 1.6",
        "2.00",
        "2.00-2.00",
        "NO",
    ]
    assert found["index: rate relative to jwarc"] == ["at least 4", "-", "-", "not measured"]
    assert not any("zipnum" in name for name in found)


def test_a_demand_may_be_a_number_or_name_the_only_other_tool() -> None:
    found = rows({"zipnum": {"cdxmill": costs(1)}, "pipeline": {"cdxmill": costs(2), "shell": costs(11)}})
    assert found["zipnum: peak memory, GiB"] == ["at most 1.5", "1.00", "1.00-1.00", "yes"]
    assert found["build: rate relative to the shell pipeline"] == ["at least 5", "5.50", "5.50-5.50", "yes"]


def test_a_summary_runs_only_the_tools_of_demands() -> None:
    tools = [Tool(name, lambda _: []) for name in ("cdxmill", "warcio index", FASTWARC)]
    section = Section("web", "", "", 1, [], tools)
    assert [tool.name for tool in demands.without_others(section).tools] == ["cdxmill", FASTWARC]
    assert demands.without_others(section._replace(name="web-large")).tools == []
    assert demands.without_others(section._replace(name="pipeline")).tools == tools


def test_the_plot_has_one_bar_per_tool_with_the_fastest_last() -> None:
    tools = {"cdxmill": costs(2), "a <peer> & more": costs(4), FASTWARC: costs(1), "warcio index": costs(3)}
    measured: dict[str, Any] = {"web": {"size": 100e6, "tools": tools}, "other": {}}
    svg = ElementTree.fromstring(plot.draw(measured))
    bars = [element for element in svg if element.tag.endswith("rect")]
    assert [bar.get("class") for bar in bars] == ["peer", "ours", "limit"]
    widths = [float(bar.get("width", "0")) for bar in bars]
    assert widths[2] == 2 * widths[1] == 4 * widths[0] > 0
    assert "50" in [element.text for element in svg]
    assert "prefers-color-scheme: dark" in plot.draw(measured)


def test_tables_are_written_between_the_marks_of_a_page_or_to_a_new_file(tmp_path: Path) -> None:
    page, fresh = tmp_path / "page.md", tmp_path / "fresh.md"
    page.write_text(f"before\n\n{MARKS[0]}\n\nold\n\n{MARKS[1]}\n\nbehind\n")
    for path in (page, fresh):
        write_markdown(path, "new")
    assert page.read_text() == f"before\n\n{MARKS[0]}\n\nnew\n\n{MARKS[1]}\n\nbehind\n"
    assert fresh.read_text() == "new\n"
    for name in (
        "docs/benchmarks.md",
        "bench/measured/speed.md",
        "bench/measured/tables.md",
        "bench/measured/zstd.md",
    ):
        assert all(mark in (ROOT / name).read_text() for mark in MARKS)


def test_the_plot_of_the_page_exists() -> None:
    assert "(docs/benchmarks.svg)" in (ROOT / "README.md").read_text()
    assert ElementTree.parse(ROOT / "docs/benchmarks.svg").getroot().tag.endswith("svg")
