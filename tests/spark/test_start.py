"""Spark on this machine keeps what makes its next start faster, and starts without it, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.spark import java
from cdxmill.spark.engine import Engine
from tests.spark.conftest import start


def test_the_second_start_uses_the_classes_that_the_first_has_kept(engine: Engine, kept: Path) -> None:
    java = engine._context._gateway.proc
    assert str(kept) in Path(f"/proc/{java.pid}/maps").read_text()
    assert {path.name for path in kept.parent.iterdir()} == {"mine.jar", kept.name}


def test_a_damaged_archive_of_classes_is_not_used(cache: Path, kept: Path, tmp_path: Path) -> None:
    """Java would crash."""
    copy = tmp_path / cache.name
    shutil.copytree(cache, copy)
    damaged = copy / "spark" / kept.name
    damaged.chmod(0o600)
    with damaged.open("r+b") as file:
        file.seek(damaged.stat().st_size // 2)
        file.write(b"damaged" * 1000)
    assert kept.name not in start(copy)
    assert {path.name for path in damaged.parent.iterdir()} == {"mine.jar", kept.name}


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [("a cache", True), ('a"b', False), ("a\\b", False), ("100%", False), ("a\nb", False)],
)
def test_classes_are_kept_where_the_options_of_java_can_name_a_file(
    name: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("#!/bin/sh\n")
    (tmp_path / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "")
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / name))
    options, written = java.options(str(tmp_path))
    assert ((tmp_path / name / "spark").exists(), written is not None) == (is_kept, is_kept)
    assert (f'"-XX:ArchiveClassesAtExit={written}"' in options) is is_kept
