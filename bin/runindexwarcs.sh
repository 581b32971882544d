#!/usr/bin/env bash
# Step 1: index the archives in WARC_MANIFEST. Writes one .cdx.gz per archive to WARC_CDX_BUCKET.
#
#   bin/runindexwarcs.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/indexwarcsjob.py]
#
#   --background   run in the background with nohup; prints the path of the log
#   --dry-run      print the command only
#
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 some archives failed (each is reported), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch index bin/runsample.sh "$@"
