"""The benchmark of changes runs: each command does what is measured."""

from __future__ import annotations

import re

import pytest

from bench.collections import DEMANDS, main


def test_all_changes_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--lines", "8000", "--keys", "400", "--rounds", "1", "--processes", "1"])
    said = capsys.readouterr().out
    rows = re.findall(r"^(\S.*?) +\d+\.\d\d CPU s +\d+\.\d\d s +\d+ MB$", said, re.M)
    assert rows == ["rebuild", "cp", "add near", "remove near", "add spread", "remove keys", "compact"]
    ratios = re.findall(r"^(\S.*?) +\d+\.\d{4} of ", said, re.M)
    assert ratios == [*DEMANDS]
