"""The settings of mrjob that come with cdxmill, what the nodes get, and what is installed."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT, clean_environment

RUNNERS = ("local", "hadoop", "emr")
BOOTSTRAP = (ROOT / "bootstrap.sh").read_text()

every_runner = pytest.mark.parametrize("runner", RUNNERS)


def settings(runner: str) -> dict[str, Any]:
    """What the sample says for its runner."""
    loaded = yaml.safe_load((ROOT / f"conf/mrjob-{runner}.conf").read_text())
    given: dict[str, Any] = loaded["runners"][runner]
    return given


def known_to_amazon(name: str) -> Any:
    """A list of the EMR service, as moto has it."""
    return json.loads(gzip.decompress((files("moto.emr") / f"resources/{name}.json.gz").read_bytes()))


@every_runner
def test_mrjob_knows_every_setting(runner: str) -> None:
    names = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "from mrjob.options import _RUNNER_OPTS as o; print(*o)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert set(settings(runner)) <= set(names)


@every_runner
def test_a_sample_holds_no_key(runner: str) -> None:
    text = (ROOT / f"conf/mrjob-{runner}.conf").read_text()
    assert not re.search(r"aws_(access|secret|session)|AKIA|PRIVATE KEY", text)
    assert 'AWS_SECRET_ACCESS_KEY=""' in (ROOT / "index_env.sample.sh").read_text()


def test_the_release_of_emr_is_the_newest_of_7() -> None:
    labels = [
        label
        for label in known_to_amazon("release-labels-us-east-1")
        if re.fullmatch(r"emr-7\.\d+\.\d+", label)
    ]
    newest = max(labels, key=lambda label: [int(part) for part in label.removeprefix("emr-").split(".")])
    assert settings("emr")["release_label"] == newest


def test_the_instances_are_there_in_both_architectures() -> None:
    given, types = settings("emr"), known_to_amazon("instance_types")
    offered = known_to_amazon(f"instance-types-{given['release_label']}")
    text = (ROOT / "conf/mrjob-emr.conf").read_text()
    pairs = re.findall(r"_instance_type: (\S+) +# (\S+)", text)
    assert len(pairs) == 3
    for pair in pairs:
        assert set(pair) <= set(offered)
        assert [types[each]["Architecture"] for each in pair] == ["AARCH64", "X86_64"]
        assert types[pair[0]]["VCPU"] == types[pair[1]]["VCPU"]
    for role in ("core", "task"):
        assert types[given[f"{role}_instance_type"]]["NumberOfDisks"] > 0


def test_a_container_s_jvm_leaves_room_for_python() -> None:
    for runner in ("hadoop", "emr"):
        jobconf = settings(runner)["jobconf"]
        for kind in ("map", "reduce"):
            heap = int(jobconf[f"mapreduce.{kind}.java.opts"].removeprefix("-Xmx").removesuffix("m"))
            assert jobconf[f"mapreduce.{kind}.memory.mb"] - heap >= 1000


def test_the_nodes_get_what_indexing_and_counting_import_in_the_versions_that_are_tested() -> None:
    program = "import sys, pkgutil, cdxmill.storage, cdxmill.commands.per_archive.index\n"
    program += "import isal.isal_zlib, orjson, zstandard\n"  # for members that are not plain, for fields, and for spilled lines
    program += "for module in pkgutil.iter_modules(cdxmill.storage.__path__, 'cdxmill.storage.'):\n    __import__(module.name)\n"
    program += "print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    owners = importlib.metadata.packages_distributions()
    # what urllib3 would take if it is there, what makes this an editable install, and the cache of `lookup`
    not_needed = {"cdxmill", "brotli", "brotlipy", "cffi", "setuptools", "cachetools"}
    needed = {owner for name in loaded.split() for owner in owners.get(name, [])} - not_needed
    needed |= {"ada-url", "msgspec", "resiliparse", "selectolax"}  # for the counting jobs
    pins = dict(pin.split("==") for pin in re.findall(r"[a-z0-9-]+==[\d.]+", BOOTSTRAP))
    assert set(pins) == {*needed, "boto3"}
    constraints = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    assert pins == {name: constraints[name] for name in pins}


def stand_in(directory: Path, name: str, does: str) -> Path:
    """A command that notes how it is called, and then does something."""
    path = directory / name
    path.write_text(f'#!/bin/bash\necho "{name} $*" >> "$NOTES"\n{does}\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("has_python", [True, False])
def test_bootstrap_makes_an_environment(has_python: bool, tmp_path: Path) -> None:
    """dnf, root and Python are stood in for: the test installs nothing on the machine, and reaches no network."""
    commands, made, place = tmp_path / "bin", tmp_path / "made", tmp_path / "env"
    for directory in (commands, made, place / "bin"):
        directory.mkdir(parents=True)
    for name in ("bash", "cp"):
        (commands / name).symlink_to(shutil.which(name) or name)
    stand_in(commands, "sudo", '"$@"')
    venv_python = stand_in(made, "python", "")
    python = stand_in(commands if has_python else made, "python3.11", f"cp {venv_python} {place}/bin")
    stand_in(commands, "dnf", f"cp {python} {commands}")
    notes = tmp_path / "notes"
    env = {**clean_environment(), "PATH": str(commands), "NOTES": str(notes)}
    subprocess.run(
        [ROOT / "bootstrap.sh", place, "--index-url", "https://mirror/simple"], env=env, check=True
    )
    called = [line for line in notes.read_text().splitlines() if not line.startswith("sudo ")]
    installed = [] if has_python else ["dnf install --assumeyes --quiet python3.11 python3.11-pip"]
    assert called[:-2] == [*installed, f"python3.11 -m venv --clear -- {place}"]
    assert called[-2].startswith("python -m pip install ")
    assert "--only-binary :all: --retries 10 --index-url https://mirror/simple ada-url==" in called[-2]
    assert (
        called[-1]
        == "python -c import ada_url, boto3, deflate, isal, msgspec, orjson, resiliparse, selectolax, stringzilla, urllib3, zstandard"
    )


def test_requirements_are_those_of_setup() -> None:
    lines = [
        line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")
    ]
    assert lines == ["-e .[s3,jobs]"]
    metadata = importlib.metadata.metadata("cdxmill")
    assert {"s3", "jobs"} <= set(metadata.get_all("Provides-Extra") or [])
    wanted = [
        line
        for line in importlib.metadata.requires("cdxmill") or []
        if "extra ==" not in line or '"s3"' in line or '"jobs"' in line
    ]
    assert {re.match(r"[\w-]+", line)[0] for line in wanted} >= {"mrjob", "boto3", "isal", "zstandard"}  # type: ignore[index]
