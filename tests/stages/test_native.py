"""The compiled part is used only if it was compiled from the current sources."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest

from cdxmill.stages import native
from tests.material.sanitizers import SOURCES

SHOW = "from cdxmill.stages import native; print(native.read, native.Merger, native.odd_line, native.lines_in_order, native.frame_within)"
STALE = f"import cdxmill.stages._native as compiled; compiled.sources += 1; {SHOW}"
GONE = f"import sys; sys.modules['cdxmill.stages._native'] = None; {SHOW}"


def test_it_was_compiled_from_the_current_sources() -> None:
    files = sorted(SOURCES.glob("*.[ch]"))
    assert zlib.crc32(b"".join(path.read_bytes() for path in files)) == native.SOURCES, "update SOURCES"
    assert native.read is not None, "install a C compiler and Python's headers, and run bin/test again"


@pytest.mark.parametrize("start", [STALE, GONE], ids=["other-sources", "missing"])
def test_a_missing_or_outdated_module_is_not_used(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True)
    assert done.stdout == "None None None None None\n"
