#!/usr/bin/env python3
"""Start script for spark-submit: index archives on Spark."""

from __future__ import annotations

from cdxmill.spark.scripts import index, run

if __name__ == "__main__":
    run(index)
