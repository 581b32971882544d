#!/usr/bin/env bash
# All three steps: archives -> .cdx.gz -> split points -> cluster.
#
#   bin/run_index_hadoop.sh [OPTIONS] [OPTIONS OF mrjob]
#   bin/run_index_hadoop.sh [OPTIONS] YEAR-WEEK MANIFEST [SPLIT_FILE] [OPTIONS OF mrjob]
#
#   YEAR-WEEK      of a crawl, such as 2026-44; index_env.sh can use it as $YEARWEEK. For URLs that index_env.sh
#                  does not set, those of Common Crawl are used
#   MANIFEST       list of archives, instead of WARC_MANIFEST; '' skips step 1
#   SPLIT_FILE     an existing split file, instead of that of index_env.sh; skips step 2
#   --background   run in the background with nohup; prints the path of the log
#   --dry-run      print the commands only
#   -r RUNNER      hadoop, emr or local, instead of $RUNNER
#   --replace      index all archives again, sample again, and replace the cluster
#   --replace-cluster
#                  replace the cluster only: after some inputs failed, only these are indexed, and the cluster is built again
#
# Other options go to all three jobs. INDEX_OPTIONS, SAMPLE_OPTIONS and ZIPNUM_OPTIONS in index_env.sh go to one job.
# Step 1 skips archives that have a .cdx.gz. Step 2 is skipped if SPLIT_FILE exists, and with -r local if it is not set.
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 some inputs failed (each is reported, the rest is done), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

skip_existing=true
replace_cluster=false
again='run this again with --replace-cluster, which indexes only them'

take_skip_existing() {
    local word rest=()
    for word in "${arguments[@]}"; do
        if [[ "$word" == --replace ]]; then
            skip_existing=false
            INDEX_OPTIONS+=("$word")
            SAMPLE_OPTIONS+=("$word")
            ZIPNUM_OPTIONS+=("$word")
        elif [[ "$word" == --replace-cluster ]]; then
            replace_cluster=true
            ZIPNUM_OPTIONS+=(--replace)
        else
            rest+=("$word")
        fi
    done
    arguments=("${rest[@]}")
}

# As webarchive-indexing's script: without step 1, the crawler has written the CDX files, and 30% of them are sampled.
use_positional() {
    [[ ${#positional[@]} -gt 0 ]] || return 0
    local temporary=s3a://commoncrawl-index-temp crawl=CC-MAIN-$YEARWEEK
    WARC_MANIFEST=${positional[1]}
    : "${WARC_BUCKET:=s3a://commoncrawl}" "${WARC_CDX_BUCKET:=$temporary}"
    if [[ -z "$WARC_MANIFEST" && -z "${WARC_CDX:-}" ]]; then
        WARC_CDX="$temporary/$crawl/cdx/segments/*/*/*.cdx.gz"
        : "${WARC_CDX_SAMPLE:=$temporary/$crawl/cdx/segments/*[358]/*/*.cdx.gz}"
    fi
    : "${WARC_CDX:=$WARC_CDX_BUCKET/cc-index/cdx/$crawl/segments/*/*/*.cdx.gz}"
    SPLIT_FILE=${positional[2]:-${SPLIT_FILE:-}}
    if [[ -z "$SPLIT_FILE" ]] && ! is_here; then
        SPLIT_FILE=$temporary/$crawl/splits.seq
    fi
    if [[ -z "${ZIPNUM_CLUSTER_DIR:-}" ]]; then
        ZIPNUM_CLUSTER_DIR=s3a://commoncrawl/cc-index/collections/$crawl/indexes
        : "${ZIPNUM_OUTPUT_DIR:=$temporary/$crawl/indexes}"
    fi
    check_year_and_week
}

# Fails if the cluster is finished already: the ZipNum job would, but only after steps 1 and 2.
check_cluster() {
    $skip_existing && ! $replace_cluster && ! is_here && [[ "$ZIPNUM_CLUSTER_DIR" == *://* ]] && ! $dry_run || return 0
    ! exists "${ZIPNUM_CLUSTER_DIR%/}/cluster.json" ||
        fail "$ZIPNUM_CLUSTER_DIR: holds a finished cluster; use --replace-cluster to replace it, or choose another directory for ZIPNUM_CLUSTER_DIR"
}

# Runs a step. Exits if its job stopped.
step() {
    run_step "$1" "${arguments[@]}"
    go_on
}

take_crawl MANIFEST "$@"
pick_runner hadoop
take_skip_existing
use_positional
check_crawl
[[ -z "${SPLIT_FILE:-}" ]] || check_settings sample
check_engine
[[ ${#positional[@]} -lt 3 ]] || $dry_run || exists "$SPLIT_FILE" || fail "$SPLIT_FILE: no such split file; omit it to create one"
check_cluster
$index || check_cdx "$WARC_CDX"
go_to_background "$@"

! $index || step index
if [[ -z "${SPLIT_FILE:-}" ]]; then
    $dry_run || say 'sample: skipped, because SPLIT_FILE is not set; step 3 finds the split points'
elif [[ ${#positional[@]} -eq 3 ]] || { ! $dry_run && $skip_existing && exists "$SPLIT_FILE"; }; then
    $dry_run || say "sample: skipped, because $SPLIT_FILE exists"
else
    step sample
fi
step zipnum
status=$worst
end bin/publish_index.sh
