#!/usr/bin/env bash
# Publishes the cluster in ZIPNUM_CLUSTER_DIR: checks it, copies it to PUBLISH_DIR if that is set, and writes
# cluster.idx, .summary, .loc and metadata.yaml.
#
#   bin/publish_index.sh [--background] [--dry-run] [OPTIONS OF cdxmill publish]
#   bin/publish_index.sh [--background] [--dry-run] YEAR-WEEK [MONTH] [OPTIONS OF cdxmill publish]
#
#   YEAR-WEEK      of a crawl, such as 2026-44; index_env.sh can use it as $YEARWEEK. Without an index_env.sh the
#                  cluster's URL is that of Common Crawl
#   MONTH          for the title, such as "November 2026 Index"; without it an existing title is kept
#   --background   run in the background with nohup; prints the path of the log
#   --dry-run      print the command only
#
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 the cluster is corrupt, 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

take_arguments "$@"
title=()
take_positional 2
if [[ ${#positional[@]} -gt 0 ]]; then
    read_settings optional
    : "${ZIPNUM_CLUSTER_DIR:=s3a://commoncrawl/cc-index/collections/CC-MAIN-$YEARWEEK/indexes}"
    check_year_and_week
    [[ ${#positional[@]} -lt 2 ]] || title=(--title "${positional[1]^} ${YEARWEEK%%-*} Index")
else
    read_settings
fi
need ZIPNUM_CLUSTER_DIR
find_python
go_to_background "$@"
run_or_show "$python" -m cdxmill publish "${title[@]}" "${arguments[@]}" "$ZIPNUM_CLUSTER_DIR" "${PUBLISH_DIR:-$ZIPNUM_CLUSTER_DIR}"
end 'see docs/serving.md to serve it with pywb or OpenWayback'
