#!/usr/bin/env python3
"""Start script of the index job: one CDX file per archive."""

from __future__ import annotations

from cdxmill.jobs.index_job import IndexWARCJob

if __name__ == "__main__":
    IndexWARCJob.run()
