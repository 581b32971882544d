"""The name cdxmill is nobody's on PyPI: no page and no message tells to install it from there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = re.compile(
    r"""\b(?:pip3?|pipx|uv(?: tool| pip)?|poetry|conda) (?:install|add|run)\s(?:[^\n`;:,]*?\s)?"""
    r"""["']?cdxmill(?:\[|\s|["'`]|==|$)"""
)
"""A command that installs the name. A path, such as ./cdxmill, is another thing."""


@pytest.mark.parametrize(
    ("command", "is_by_name"),
    [
        ("pip install cdxmill", True),
        ("pip install -U 'cdxmill[s3]'", True),
        ("pipx install cdxmill==0.1", True),
        ("uv tool install cdxmill", True),
        ("pip install './cdxmill[s3]', with a checkout in ./cdxmill", False),
        ("pip install ./cdxmill", False),
        ("pip wheel --no-deps ./cdxmill", False),
    ],
)
def test_the_pattern(command: str, is_by_name: bool) -> None:
    assert bool(BY_NAME.search(command)) == is_by_name


def test_nothing_tells_to_install_the_name() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    found = []
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name.startswith("tests/") or not name or not path.is_file():
            continue
        lines = path.read_bytes().decode(errors="replace").split("\n")
        found += [f"{name}: {line}" for line in lines if BY_NAME.search(line)]
    assert found == []
