#!/usr/bin/env bash
# Step 1: a .cdx.gz for each archive of WARC_MANIFEST, into WARC_CDX_BUCKET.
#
#   bin/runindexwarcs.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/indexwarcsjob.py]
#
#   --background   with nohup; says where the log is
#   --dry-run      shows the command, runs nothing
#
# Settings are read from index_env.sh (INDEX_ENV=FILE takes another): docs/launchers.md.
# Exit status: 0 well, 1 some archives failed (each is named), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch index bin/runsample.sh "$@"
