"""hashes.txt, from which bin/setup-env installs, and constraints-lowest.txt belong to setup.py and constraints.txt.

If a test fails after a change of these: bin/setup-env audit && .venv/bin/python bin/lock.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = re.compile(
    r"^# (.+)\n([\w.-]+)==([\w.]+)(?: ;.*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)


class Package(NamedTuple):
    """A package of hashes.txt: its version, and the extras that need it."""

    version: str
    extras: set[str]


def hashed() -> dict[str, Package]:
    found = PACKAGE.findall((ROOT / "hashes.txt").read_text())
    return {
        canonicalize_name(name): Package(version, set(extras.split())) for extras, name, version, _ in found
    }


def pinned(file: str) -> dict[str, str]:
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def required() -> Iterator[tuple[str, Requirement]]:
    """The requirements of setup.py, each with its extra, or `cdxmill`. An .egg-info may be that of an earlier build."""
    installed = next(one for one in distributions(name="cdxmill") if one.read_text("METADATA"))
    for text in installed.requires or ():
        extra = re.search(r"""extra == ["'](\w+)["']""", text)
        yield extra[1] if extra else "cdxmill", Requirement(text)


def test_each_package_of_the_constraints_has_hashes() -> None:
    text = (ROOT / "hashes.txt").read_text()
    assert PACKAGE.sub("", text).splitlines() == ["# Written by bin/lock.py."]
    assert {name: one.version for name, one in hashed().items()} == pinned("constraints.txt")


def test_the_hashes_have_what_setup_py_requires() -> None:
    packages = hashed()
    for extra, requirement in required():
        package = packages[canonicalize_name(requirement.name)]
        assert extra in package.extras, requirement
        assert requirement.specifier.contains(package.version), requirement


def test_the_lowest_versions_are_those_that_setup_py_names() -> None:
    """bin/test-lowest runs tests with them. Where a version was withdrawn, it is the next one."""
    lowest = pinned("constraints-lowest.txt")
    for extra, requirement in required():
        name = canonicalize_name(requirement.name)
        if extra in {"cdxmill", "s3", "scan", "parquet", "jobs"} and name in lowest:
            bounds = [one.version for one in requirement.specifier if one.operator in (">=", "==")]
            assert bounds, f"{requirement} has no lower bound"
            assert requirement.specifier.contains(lowest[name])
            same = f"{lowest[name]}.0".startswith(bounds[0].rpartition(".")[0] or bounds[0])
            assert same or name == "setuptools", f"{requirement}, {lowest[name]}"


def test_the_packages_of_an_extra_are_printed() -> None:
    done = subprocess.run([ROOT / "bin/hashed-packages.sh", "s3"], capture_output=True, text=True, check=True)
    names = set(re.findall(r"^([\w.-]+)==", done.stdout, re.M))
    assert {"boto3", "click", "setuptools"} <= names
    assert not {"pywb", "pytest", "mrjob"} & names
