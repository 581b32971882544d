#!/usr/bin/env python3
"""Start script that samples CDX files and writes both split files."""

from __future__ import annotations

import sys

from cdxmill.jobs.sample_job import dosample

if __name__ == "__main__":
    sys.exit(dosample())
