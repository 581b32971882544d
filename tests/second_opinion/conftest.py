"""One survey for all tests of this folder. Its counts are in the summary of the test run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .archives import ARCHIVES
from .survey import Survey, survey

DIRECTORY = Path(__file__).parent
SUMMARY: list[str] = []


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder in one process, so that the survey is made once and not once per process."""
    for item in items:
        if item.path.parent == DIRECTORY:
            item.add_marker(pytest.mark.xdist_group("second_opinion"))


@pytest.fixture(scope="session")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """All archives indexed by cdxmill and its peers, and compared."""
    outcome = survey(ARCHIVES, tmp_path_factory.mktemp("second_opinion"))
    SUMMARY.extend(_summary(outcome))
    return outcome


def _summary(outcome: Survey) -> list[str]:
    verdicts = outcome.verdicts.values()
    rules = Counter(one.rule or "(none)" for verdict in verdicts for one in verdict.differences)
    aside = Counter(one.reason for verdict in verdicts for one in verdict.aside)
    damage = [
        f"{name}{'' if report.offset is None else f'@{report.offset}'}: {report.reason}"
        for name, ours in outcome.run.answers.items()
        for report in ours.reports
    ]
    lines = [f"{sum(verdict.compared for verdict in verdicts):6} records compared"]
    lines += [f"{count:6} set aside: {reason}" for reason, count in sorted(aside.items())]
    lines += [f"{count:6} differences by rule {rule}" for rule, count in sorted(rules.items())]
    return [*lines, f"{len(damage):6} reports of damage and notes:", *damage]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of compared and excluded records, and all reports of damage."""
    if SUMMARY:
        terminalreporter.section("second opinion")
        for line in SUMMARY if terminalreporter.verbosity >= 0 else SUMMARY[:30]:
            terminalreporter.write_line(line)
