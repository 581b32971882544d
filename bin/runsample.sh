#!/usr/bin/env bash
# Step 2: split points from a sample of WARC_CDX (or WARC_CDX_SAMPLE, a part of it), to SPLIT_FILE.
#
#   bin/runsample.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/dosample.py]
#
#   --background   with nohup; says where the log is
#   --dry-run      shows the command, runs nothing
#
# Settings are read from index_env.sh (INDEX_ENV=FILE takes another): docs/launchers.md.
# Exit status: 0 well, 1 some CDX files failed (each is named), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch sample bin/runzipcluster.sh "$@"
