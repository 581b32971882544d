"""Spark on this machine keeps what makes its next start faster, and starts without it, too."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pyspark
import pytest

from cdxmill.spark.engine import Engine


def start(word: str) -> tuple[list[int], bool]:
    """The results of a small job, and whether a file with `word` in its path is mapped by Java, which has ended then."""
    with Engine("", 1, quiet=True) as engine:
        found = [result for _, result in engine.run_tasks(abs, [-1, 2], 1, lambda: None)]
        java = engine._context._gateway.proc
        maps = Path(f"/proc/{java.pid}/maps").read_text()
    java.wait()
    return found, word in maps


def test_the_second_start_uses_the_classes_that_the_first_has_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "a cache"))
    folder = tmp_path / "a cache" / "spark"
    foreign = {folder / name for name in ("LICENSE", "mine.jar", "notes.txt")}
    folder.mkdir(parents=True)
    for path in foreign:
        path.write_text("mine")
    assert start(".jsa.") == ([1, 2], False)
    [kept] = set(folder.iterdir()) - foreign
    assert start(kept.name) == ([1, 2], True)
    assert capfd.readouterr().out == ""
    kept.chmod(0o600)
    with kept.open("r+b") as file:
        file.seek(kept.stat().st_size // 2)
        file.write(b"damaged" * 1000)
    assert start(kept.name) == ([1, 2], False)  # Java would crash
    [new] = set(folder.iterdir()) - foreign
    assert start(new.name) == ([1, 2], True)
    assert capfd.readouterr().out == ""


def test_the_processes_of_tasks_use_the_installed_sources() -> None:
    with Engine("", 1, quiet=True) as engine:
        [(_, found)] = engine.run_tasks(resolve_name, ["pyspark:__file__"], 1, lambda: None)
    assert found == pyspark.__file__  # not those in Spark's archive, which are compiled at each start
