"""A plug-in of pytest for `reach`: the context of coverage.py is the test that runs, and how long each one takes is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.command_server import switch_context

_times: dict[str, float] = {}


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin the context of a test."""
    switch_context(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add to the seconds of a test."""
    test = report.nodeid.partition("@")[0]
    _times[test] = _times.get(test, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Keep the seconds: in each process of the run, and in the one that gathers them."""
    path = Path(os.environ["CDXMILL_TIMES"]) / f"times.{os.getpid()}.json"
    path.write_text(json.dumps(_times))
