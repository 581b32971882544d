#!/usr/bin/env python3
"""Start script that samples CDX files and writes both split files."""

from __future__ import annotations

import sys

from cdxmill.jobs.dosample import main

if __name__ == "__main__":
    sys.exit(main())
