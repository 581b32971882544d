#!/usr/bin/env python3
"""Start script that converts split files: text <-> Hadoop SequenceFile."""

from __future__ import annotations

import sys

from cdxmill.jobs.seqfileutils import main

if __name__ == "__main__":
    sys.exit(main())
