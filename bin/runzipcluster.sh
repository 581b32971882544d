#!/usr/bin/env bash
# Step 3: build a ZipNum cluster from WARC_CDX in ZIPNUM_CLUSTER_DIR. SPLIT_FILE gives the shards.
#
#   bin/runzipcluster.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/zipnumclusterjob.py]
#
#   --background   run in the background with nohup; prints the path of the log
#   --dry-run      print the command only
#
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 some CDX files failed (each is reported), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch zipnum bin/publish_index.sh "$@"
