#!/usr/bin/env python3
"""Start script for spark-submit: build a ZipNum cluster on Spark."""

from __future__ import annotations

from cdxmill.spark.scripts import run, zipnum

if __name__ == "__main__":
    run(zipnum)
