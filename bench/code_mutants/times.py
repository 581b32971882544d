"""A plug-in of pytest for `reach`: each test begins with all marks, and how long it takes is kept."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from .reach import name_of

_times: dict[str, float] = {}


def pytest_runtest_logstart() -> None:
    """A test begins: its first call of a function counts, also if another test has called it."""
    if (module := sys.modules.get("cdxmill._reached")) is not None:
        module.known.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add to the seconds of a test."""
    test = name_of(report.nodeid)
    _times[test] = _times.get(test, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Keep the seconds: in each process of the run."""
    path = Path(os.environ["CDXMILL_TIMES"]) / f"{os.getpid()}.json"
    path.write_text(json.dumps(_times))
