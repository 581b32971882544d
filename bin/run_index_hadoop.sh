#!/usr/bin/env bash
# All three steps: archives -> .cdx.gz -> split points -> cluster.
#
#   bin/run_index_hadoop.sh [OPTIONS] [OPTIONS OF mrjob]
#   bin/run_index_hadoop.sh [OPTIONS] YEAR-WEEK MANIFEST [SPLIT_FILE] [OPTIONS OF mrjob]
#
#   YEAR-WEEK      of a crawl, such as 2026-44; index_env.sh finds it in YEARWEEK. Places that no index_env.sh
#                  names are those of Common Crawl
#   MANIFEST       list of archives, instead of WARC_MANIFEST; '' leaves step 1 out
#   SPLIT_FILE     a split file that is there, instead of that of index_env.sh; leaves step 2 out
#   --background   with nohup; says where the log is
#   --dry-run      shows the commands, runs nothing
#   -r RUNNER      hadoop, emr or local, instead of RUNNER
#   --no-skip-existing   indexes all archives again, and samples again
#
# Other options go to all three jobs; INDEX_OPTIONS, SAMPLE_OPTIONS and ZIPNUM_OPTIONS of index_env.sh to one.
# Step 1 leaves archives out that have their .cdx.gz, and step 2 is left out where SPLIT_FILE is there already.
# Settings are read from index_env.sh (INDEX_ENV=FILE takes another): docs/launchers.md.
# Exit status: 0 well, 1 some inputs failed (each is named, the rest is done), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

skip_existing=true
worst=0

take_skip_existing() {
    local word rest=()
    for word in "${arguments[@]}"; do
        if [[ "$word" == --no-skip-existing ]]; then
            skip_existing=false
            INDEX_OPTIONS+=("$word")
        else
            rest+=("$word")
        fi
    done
    arguments=("${rest[@]}")
}

use_places() {
    [[ ${#places[@]} -gt 0 ]] || return 0
    WARC_MANIFEST=${places[1]}
    : "${WARC_BUCKET:=s3a://commoncrawl}" "${WARC_CDX_BUCKET:=s3a://commoncrawl}"
    : "${WARC_CDX:=s3a://commoncrawl/cc-index/cdx/CC-MAIN-$YEARWEEK/segments/*/*/*.cdx.gz}"
    : "${SPLIT_FILE:=s3a://commoncrawl-index-temp/CC-MAIN-$YEARWEEK/splits.seq}"
    : "${ZIPNUM_CLUSTER_DIR:=s3a://commoncrawl/cc-index/collections/CC-MAIN-$YEARWEEK/indexes}"
    SPLIT_FILE=${places[2]:-$SPLIT_FILE}
    check_year_and_week
}

# Hadoop writes to no folder that holds a finished cluster: that is better told now than after steps 1 and 2.
check_cluster() {
    [[ "$RUNNER" != local && "$RUNNER" != inline && "$ZIPNUM_CLUSTER_DIR" == *://* ]] && ! $dry_run || return 0
    ! is_there "${ZIPNUM_CLUSTER_DIR%/}/cluster.json" ||
        fail "$ZIPNUM_CLUSTER_DIR holds a finished cluster: name another folder in ZIPNUM_CLUSTER_DIR, or delete it"
}

# A step; ends the launcher where its job does not end well.
step() {
    run_step "$1" "${arguments[@]}"
    [[ $status -le 1 ]] || end ''
    worst=$((status > worst ? status : worst))
}

take_arguments "$@"
take_places 3
[[ ${#places[@]} -ne 1 ]] || fail "MANIFEST is missing behind ${places[0]}: see bin/$launcher --help"
if [[ ${#places[@]} -gt 0 ]]; then
    read_settings optional
else
    read_settings
fi
pick_runner hadoop
take_skip_existing
use_places
index=true
[[ ${#places[@]} -eq 0 || -n "$WARC_MANIFEST" ]] || index=false
! $index || check_settings index
check_settings sample
check_settings zipnum
check_engine
[[ ${#places[@]} -lt 3 ]] || $dry_run || is_there "$SPLIT_FILE" || fail "there is no split file $SPLIT_FILE: leave it out to make one"
check_cluster
$index || check_cdx "$WARC_CDX"
go_to_background "$@"

! $index || step index
if [[ ${#places[@]} -eq 3 ]] || { ! $dry_run && $skip_existing && is_there "$SPLIT_FILE"; }; then
    $dry_run || say "sample: left out, for $SPLIT_FILE is there"
else
    step sample
fi
step zipnum
status=$worst
end bin/publish_index.sh
