#!/usr/bin/env bash
# Step 2: sample WARC_CDX (or WARC_CDX_SAMPLE, a part of it) and write split points to SPLIT_FILE.
#
#   bin/runsample.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/dosample.py]
#
#   --background   run in the background with nohup; prints the path of the log
#   --dry-run      print the command only
#
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 some CDX files failed (each is reported), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch sample bin/runzipcluster.sh "$@"
