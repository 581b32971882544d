"""Starts Spark on this machine, runs a small job, and prints the files that Java has mapped, when Java has ended."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pyspark

from cdxmill.spark.engine import Engine, _is_installed


def main() -> None:
    """Run it. Tests are collected from all files: none may start Spark when it is imported."""
    with Engine("", 1, quiet=True) as engine:
        [(_, found)] = engine.run_tasks(resolve_name, ["pyspark:__file__"], 1, lambda: None)
        # not that in Spark's archive, which is compiled at each start; a copy of cdxmill has no daemon of its own
        assert (found == pyspark.__file__) == _is_installed()
        java = engine._context._gateway.proc
        maps = Path(f"/proc/{java.pid}/maps").read_text()
    java.wait()
    print(maps)


if __name__ == "__main__":
    main()
