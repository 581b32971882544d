#!/usr/bin/env python3
"""Start script of the recompress job: one new archive per archive."""

from __future__ import annotations

from cdxmill.jobs.recompress_job import RecompressJob

if __name__ == "__main__":
    RecompressJob.run()
