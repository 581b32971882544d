#!/usr/bin/env python3
"""Start script for spark-submit: index archives on Spark."""

from __future__ import annotations

from cdxmill.jobs.spark_index import main
from cdxmill.jobs.spark_script import run

if __name__ == "__main__":
    run(main)
