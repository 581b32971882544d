"""The sources of all archives here."""

from __future__ import annotations

from pathlib import Path

import pytest

from .sources import Source, arc_source, warc_source


@pytest.fixture(scope="session")
def warc(pywb_warcs: Path) -> Source:
    """WARC records of pywb's samples."""
    return warc_source(pywb_warcs)


@pytest.fixture(scope="session")
def arc(samples: Path) -> Source:
    """ARC records of the samples."""
    return arc_source(samples)
