#!/usr/bin/env python3
"""Start script for spark-submit: build a ZipNum cluster on Spark."""

from __future__ import annotations

from cdxmill.spark.script import run
from cdxmill.spark.zipnum_script import main

if __name__ == "__main__":
    run(main)
