#!/usr/bin/env bash
# Step 3: the ZipNum cluster of WARC_CDX, divided as SPLIT_FILE says, in ZIPNUM_CLUSTER_DIR.
#
#   bin/runzipcluster.sh [--background] [--dry-run] [-r hadoop|emr|local] [OPTIONS OF jobs/zipnumclusterjob.py]
#
#   --background   with nohup; says where the log is
#   --dry-run      shows the command, runs nothing
#
# Settings are read from index_env.sh (INDEX_ENV=FILE takes another): docs/launchers.md.
# Exit status: 0 well, 1 some CDX files failed (each is named), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

launch zipnum bin/publish_index.sh "$@"
