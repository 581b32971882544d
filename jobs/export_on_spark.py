#!/usr/bin/env python3
"""Start script for spark-submit: `cdxmill export --engine spark`."""

from __future__ import annotations

import sys

from cdxmill.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["export", "--engine", "spark", *sys.argv[1:]]))
