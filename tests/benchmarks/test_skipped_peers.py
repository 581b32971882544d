"""A peer that is not installed is skipped, and the table says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.contenders import Section, Tool, jwarc
from bench.report import as_passage
from bench.results import as_numbers
from bench.running import run_section


def test_without_java_jwarc_is_skipped_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Tool("cdxmill", lambda out: ["/bin/sh", "-c", f"echo line > {out}/o"], ("o",))
    broken = Tool("broken", lambda _: ["/bin/sh", "-c", "echo why >&2; exit 3"])
    absent = Tool("absent", lambda _: ["no-such-program"])
    monkeypatch.setenv("PATH", str(tmp_path))
    section = Section("s", "title", "facts", 1, [], [here, jwarc(tmp_path / "a.warc.gz"), broken, absent])
    results = run_section(section, 2, tmp_path / "work")
    rows = as_passage(section, results).rows
    assert rows[1][0] == "cdxmill"
    assert rows[1][-1] == "1"
    assert [row[1] for row in rows[2:]] == [
        "skipped: there is no java on the PATH",
        "failed, exit 3: why",
        "skipped: no-such-program is not installed",
    ]
    assert list(as_numbers(results)) == ["cdxmill"]
    assert len(as_numbers(results)["cdxmill"]["wall"]) == 2
