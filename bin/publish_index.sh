#!/usr/bin/env bash
# Publishes the cluster of ZIPNUM_CLUSTER_DIR in PUBLISH_DIR, or where it is: checks it, writes cluster.idx, .summary,
# .loc and metadata.yaml.
#
#   bin/publish_index.sh [--background] [--dry-run] [OPTIONS OF cdxmill publish]
#   bin/publish_index.sh [--background] [--dry-run] YEAR-WEEK [MONTH] [OPTIONS OF cdxmill publish]
#
#   YEAR-WEEK      of a crawl, such as 2026-44; index_env.sh finds it in YEARWEEK. Without an index_env.sh the place is
#                  that of Common Crawl
#   MONTH          for the title, such as "November 2026 Index"; without it a title that is there stays
#   --background   with nohup; says where the log is
#   --dry-run      shows the command, runs nothing
#
# Settings are read from index_env.sh (INDEX_ENV=FILE takes another): docs/launchers.md.
# Exit status: 0 well, 1 the cluster is damaged, 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

take_arguments "$@"
title=()
take_places 2
if [[ ${#places[@]} -gt 0 ]]; then
    read_settings optional
    : "${ZIPNUM_CLUSTER_DIR:=s3a://commoncrawl/cc-index/collections/CC-MAIN-$YEARWEEK/indexes}"
    check_year_and_week
    [[ ${#places[@]} -lt 2 ]] || title=(--title "${places[1]^} ${YEARWEEK%%-*} Index")
else
    read_settings
fi
need ZIPNUM_CLUSTER_DIR
find_python
go_to_background "$@"
run_or_show "$python" -m cdxmill publish "${title[@]}" "${arguments[@]}" "$ZIPNUM_CLUSTER_DIR" "${PUBLISH_DIR:-$ZIPNUM_CLUSTER_DIR}"
end 'docs/serving.md says how pywb and OpenWayback read it'
