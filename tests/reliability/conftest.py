"""The sources of all archives here. bench/ is not installed, so the checkout is added to the search path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .sources import Source, arc_source, warc_source

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


@pytest.fixture(scope="session")
def warc(pywb_warcs: Path) -> Source:
    """WARC records of pywb's samples."""
    return warc_source(pywb_warcs)


@pytest.fixture(scope="session")
def arc(samples: Path) -> Source:
    """ARC records of the samples."""
    return arc_source(samples)


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The world of `writers.CALLS`. Copy it; never change it."""
    from .writers import make_world

    start = tmp_path_factory.mktemp("writers") / "start"
    make_world(start)
    return start
