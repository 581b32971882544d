"""Spark on this machine keeps what makes its next start faster, and starts without it, too."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pyspark
import pytest

from cdxmill.spark.engine import Engine


def start(word: str) -> bool:
    """Run a small job. Returns whether a file with `word` in its path is mapped by Java, which has ended then."""
    with Engine("", 1, quiet=True) as engine:
        [(_, found)] = engine.run_tasks(resolve_name, ["pyspark:__file__"], 1, lambda: None)
        assert found == pyspark.__file__  # not that in Spark's archive, which is compiled at each start
        java = engine._context._gateway.proc
        maps = Path(f"/proc/{java.pid}/maps").read_text()
    java.wait()
    return word in maps


def test_the_second_start_uses_the_classes_that_the_first_has_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "a cache"))
    directory = tmp_path / "a cache" / "spark"
    directory.mkdir(parents=True)
    (directory / "mine.jar").write_text("mine")
    assert not start("a cache")
    [kept] = directory.glob("*.jsa")
    assert start(kept.name)
    kept.chmod(0o600)
    with kept.open("r+b") as file:
        file.seek(kept.stat().st_size // 2)
        file.write(b"damaged" * 1000)
    assert not start(kept.name)  # Java would crash
    assert {path.name for path in directory.iterdir()} == {"mine.jar", kept.name}
    assert capfd.readouterr().out == ""
