#!/usr/bin/env python3
"""Start script for spark-submit: index archives on Spark."""

from __future__ import annotations

from cdxmill.spark.index_script import main
from cdxmill.spark.script import run

if __name__ == "__main__":
    run(main)
