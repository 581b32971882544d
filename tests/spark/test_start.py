"""Spark on this machine keeps what makes its next start faster, and starts without it, too."""

from __future__ import annotations

import shutil
from pathlib import Path

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
