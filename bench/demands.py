"""The speed that cdxmill must reach, and what was measured: one table of ratios."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from bench import counting, scanning, tables
from bench.contenders import OURS, Section
from bench.report import Passage
from bench.results import Measured
from bench.spark_contenders import CLASSIC as SPARK
from bench.zipnum_contenders import LIMIT as ZIPNUM_LIMIT
from bench.zipnum_contenders import ONE_MEMBER, ONE_MEMBER_LIMIT

FASTWARC = "FastWARC iteration, HTTP parsed"
HEADER = ["demand", "target", "measured", "(min-max)", "met"]
GIB = 2.0**30
TITLE = "Demands"


class Demand(NamedTuple):
    """The ratio of two tools: `measure` of the tool `over`, divided by that of `under` in the same run.

    `under` may be a number. `target` is the largest ratio allowed, or the smallest if `is_least`.
    """

    text: str
    section: str
    measure: str
    over: str
    under: str | float
    target: float
    is_least: bool = False


def rate(peer: str, name: str) -> Demand:
    return Demand(f"index: rate relative to {name}", "web", "wall", peer, OURS, 4, True)


DEMANDS = [
    rate("pywb cdx-indexer -j -s", "pywb cdx-indexer"),
    rate("cdxj-indexer -s", "cdxj-indexer"),
    rate("jwarc cdx --format CDX11", "jwarc"),
    Demand("index: CPU relative to FastWARC iteration with HTTP", "web", "cpu", OURS, FASTWARC, 1.6),
    Demand(
        "index: rate of two processes relative to one", "web-two", "wall", "cdxmill -p 1", OURS, 1.9, True
    ),
    Demand(
        "recompress: rate of two processes relative to one",
        "recompress-two",
        "wall",
        "cdxmill -p 1",
        OURS,
        1.8,
        True,
    ),
    Demand(
        "recompress: rate of two processes relative to two runs at the same time",
        "recompress-two",
        "wall",
        "two runs of cdxmill -p 1",
        OURS,
        0.95,
        True,
    ),
    Demand("recompress: peak memory of a process, GiB", "recompress-two", "memory", OURS, GIB, 0.1),
    Demand("start-up, s: cdxmill --version", "start", "wall", "cdxmill --version", 1, 0.15),
    Demand("start-up, s: cdxmill zipnum --help", "start", "wall", "cdxmill zipnum --help", 1, 0.15),
    Demand("start-up, s: cdxmill index, 60 pages", "start", "wall", OURS, 1, 0.15),
    Demand(
        "zipnum: rate relative to the classic job",
        "zipnum",
        "wall",
        "classic job, mrjob -r local",
        OURS,
        7,
        True,
    ),
    Demand("zipnum: CPU relative to inflate and deflate", "zipnum", "cpu", OURS, ZIPNUM_LIMIT, 1.6),
    Demand(
        "zipnum, files of one member: rate relative to the classic job",
        "zipnum",
        "wall",
        "classic job, mrjob -r local",
        ONE_MEMBER,
        8,
        True,
    ),
    Demand(
        "zipnum, files of one member: CPU relative to inflate and deflate",
        "zipnum",
        "cpu",
        ONE_MEMBER,
        ONE_MEMBER_LIMIT,
        1.3,
    ),
    *(
        demand
        for kind, lines in tables.KINDS.items()
        for demand in (
            Demand(
                f"report, {lines}: CPU relative to inflate", f"report-{kind}", "cpu", OURS, tables.INFLATE, 2
            ),
            Demand(
                f"Parquet, {lines}: lines per CPU second relative to the naive way",
                f"parquet-{kind}",
                "cpu",
                tables.NAIVE,
                OURS,
                3,
                True,
            ),
        )
    ),
    Demand("zipnum: peak memory, GiB", "zipnum", "memory", OURS, GIB, 1.5),
    Demand(
        "zipnum: time per line, 10 million relative to 1 million",
        "linear",
        "wall",
        "cdxmill, 10 million",
        OURS,
        1.1,
    ),
    Demand(
        "zipnum: time per line, 30 million relative to 1 million",
        "linear",
        "wall",
        "cdxmill, 30 million",
        OURS,
        1.1,
    ),
    Demand(
        "zipnum: peak memory for 30 million lines, GiB", "linear", "memory", "cdxmill, 30 million", GIB, 1.5
    ),
    Demand("build: CPU of the shell pipeline relative to build", "pipeline", "cpu", "", OURS, 5, True),
    Demand("build: rate relative to the shell pipeline", "pipeline", "wall", "", OURS, 5, True),
    Demand(
        "sample: CPU relative to inflate",
        "sampling",
        "cpu",
        OURS,
        "inflate: isal, finding the members itself",
        1.2,
    ),
    *(
        Demand(
            f"count {what}: CPU of {name} relative to cdxmill", f"counting-{what}", "cpu", name, OURS, 4, True
        )
        for what in counting.KINDS
        for name in (counting.MRJOB, counting.PLAIN)
    ),
    Demand(f"Spark, zipnum: rate relative to {SPARK}", "spark-zipnum", "wall", SPARK, OURS, 4.5, True),
    Demand(f"Spark, zipnum: CPU of {SPARK}", "spark-zipnum", "cpu", SPARK, OURS, 4.5, True),
    Demand(f"Spark, index: rate relative to {SPARK}", "spark-index", "wall", SPARK, OURS, 4, True),
    Demand(f"Spark, index: CPU of {SPARK}", "spark-index", "cpu", SPARK, OURS, 4, True),
    Demand(
        f"scan: CPU of {scanning.SELECTOLAX} relative to scan",
        "scan",
        "cpu",
        scanning.SELECTOLAX,
        OURS,
        1.8,
        True,
    ),
    Demand(
        f"scan: CPU of {scanning.RESILIPARSE} relative to scan",
        "scan",
        "cpu",
        scanning.RESILIPARSE,
        OURS,
        1.8,
        True,
    ),
    *(
        Demand(
            f"scan, title and links: CPU of {scanning.LINKS} relative to scan, {what}",
            f"scan-{corpus}",
            "cpu",
            scanning.LINKS,
            OURS,
            2,
            True,
        )
        for corpus, what in scanning.INPUTS.items()
    ),
    *(
        Demand(
            f"scan, titles: CPU relative to parsing, {what}",
            f"scan-{corpus}",
            "cpu",
            scanning.TITLES,
            scanning.PARSED,
            1.4,
        )
        for corpus, what in scanning.INPUTS.items()
    ),
    Demand(
        f"scan: CPU of {scanning.SOUP} relative to scan", "scan-soup", "cpu", scanning.SOUP, OURS, 45, True
    ),
    Demand(
        "scan: a condition on the URL, CPU relative to FastWARC iteration",
        "scan-url",
        "cpu",
        OURS,
        scanning.BARE,
        1,
    ),
    Demand(
        "scan: a condition on the URL, a small archive, CPU relative to FastWARC iteration",
        "scan-small",
        "cpu",
        OURS,
        scanning.BARE,
        1,
    ),
    Demand(
        "scan: 1,000 literals, CPU relative to reading all bodies",
        "scan-literals",
        "cpu",
        OURS,
        scanning.BODIES,
        1.3,
    ),
    Demand(
        "scan: rate of two processes relative to one", "scan-two", "wall", "cdxmill -p 1", OURS, 1.9, True
    ),
    Demand(
        "scan: rate of two processes relative to two runs at the same time",
        "scan-two",
        "wall",
        scanning.TWO_RUNS,
        OURS,
        0.95,
        True,
    ),
    Demand("scan: memory for 1,000 archives relative to 100", "scan-many", "memory", OURS, scanning.FEW, 1.1),
]


def without_others(section: Section) -> Section:
    """The section with only those tools that a demand names."""
    about = [demand for demand in DEMANDS if demand.section == section.name]
    names = {OURS, *(name for demand in about for name in (demand.over, demand.under))} if about else set()
    is_any = any(not demand.over for demand in about)
    return section._replace(tools=[tool for tool in section.tools if is_any or tool.name in names])


def ratios(demand: Demand, measured: Measured) -> list[float]:
    """One ratio per run; none if one of the two tools was not measured.

    An `over` of "" means the first tool that is not cdxmill.
    """
    tools = measured.get(demand.section, {})
    over = demand.over or next((name for name in tools if name != OURS), "")
    if over not in tools or (isinstance(demand.under, str) and demand.under not in tools):
        return []
    values = tools[over][demand.measure]
    if not isinstance(demand.under, str):
        return [value / demand.under for value in values]
    return [value / base for value, base in zip(values, tools[demand.under][demand.measure], strict=True)]


def make_row(demand: Demand, measured: Measured) -> list[str]:
    found = ratios(demand, measured)
    target = f"{'at least' if demand.is_least else 'at most'} {demand.target:g}"
    if not found:
        return [demand.text, target, "-", "-", "not measured"]
    middle = median(found)
    is_met = middle >= demand.target if demand.is_least else middle <= demand.target
    spread = f"{min(found):.2f}-{max(found):.2f}"
    return [demand.text, target, f"{middle:.2f}", spread, "yes" if is_met else "NO"]


def passage(measured: Measured, quick: bool = False) -> Passage:
    """The table of the demands whose section was measured."""
    rows = [make_row(demand, measured) for demand in DEMANDS if demand.section in measured]
    facts = "Median, minimum and maximum of the ratios of all runs. Rates are of wall time."
    facts += " With tiny inputs they mean nothing." if quick else ""
    return Passage(TITLE, facts, [HEADER, *rows])
