#!/usr/bin/env python3
"""Start script for spark-submit: build a ZipNum cluster on Spark."""

from __future__ import annotations

from cdxmill.jobs.spark_script import run
from cdxmill.jobs.spark_zipnum import main

if __name__ == "__main__":
    run(main)
