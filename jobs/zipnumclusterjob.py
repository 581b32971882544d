#!/usr/bin/env python3
"""Start script of the ZipNum job: CDX files -> a ZipNum cluster."""

from __future__ import annotations

from cdxmill.jobs.zipnum_job import ZipNumClusterJob

if __name__ == "__main__":
    ZipNumClusterJob.run()
