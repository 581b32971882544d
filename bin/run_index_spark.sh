#!/usr/bin/env bash
# All steps on Spark: archives -> .cdx.gz -> split points -> cluster.
#
#   bin/run_index_spark.sh [OPTIONS] [OPTIONS OF THE JOBS]
#   bin/run_index_spark.sh [OPTIONS] YEAR-WEEK LIST [SPLITS] [OPTIONS OF THE JOBS]
#
#   YEAR-WEEK      of a crawl, such as 2026-44; index_env.sh can use it as $YEARWEEK. For URLs that index_env.sh
#                  does not set, those of Common Crawl are used
#   LIST           list of archives, instead of WARC_MANIFEST; '' skips step 1
#   SPLITS         split points, instead of SPLIT_FILE: a JSON list of [key, timestamp], read if it exists and else
#                  written; a text file or SequenceFile with split points works, too
#   --dry-run      print the commands only
#   --replace      index all archives again, and replace the cluster
#
# Other options go to both jobs. INDEX_OPTIONS and ZIPNUM_OPTIONS in index_env.sh go to one job, SPARK_OPTIONS to
# spark-submit. NUM_EXECUTORS, EXECUTOR_CORES, EXECUTOR_MEM and NUM_WARC_INPUT_PARTITIONS are used if they are set.
# Settings are read from index_env.sh; INDEX_ENV=FILE reads another file. See docs/engines.md.
# Exit status: 0 success, 1 some inputs failed (each is reported, the rest is done), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

SPARK_OPTIONS=()

use_positional() {
    [[ ${#positional[@]} -gt 0 ]] || return 0
    WARC_MANIFEST=${positional[1]}
    : "${WARC_BUCKET:=s3://commoncrawl}" "${WARC_CDX_BUCKET:=s3://commoncrawl-index-temp}"
    : "${WARC_CDX:=$WARC_CDX_BUCKET/cc-index/cdx/CC-MAIN-$YEARWEEK/segments/*/*/*.cdx.gz}"
    : "${SPLIT_FILE:=$WARC_CDX_BUCKET/CC-MAIN-$YEARWEEK/partition_boundaries.json}"
    : "${ZIPNUM_CLUSTER_DIR:=s3://commoncrawl/cc-index/collections/CC-MAIN-$YEARWEEK/indexes}"
    SPLIT_FILE=${positional[2]:-$SPLIT_FILE}
    check_year_and_week
}

# Finds spark-submit: in SPARK_HOME, beside the Python with cdxmill, or on the PATH.
find_spark() {
    local submit_path
    find_python
    if [[ -n "${SPARK_HOME:-}" ]]; then
        submit_path=$SPARK_HOME/bin/spark-submit
    elif [[ -x "${python%/*}/spark-submit" ]]; then
        submit_path=${python%/*}/spark-submit
    else
        submit_path=$(command -v spark-submit) || fail "spark-submit not found; set SPARK_HOME, or $python -m pip install '.[spark]' in the checkout"
    fi
    [[ -x "$submit_path" ]] || fail "SPARK_HOME: $submit_path: no such file; set SPARK_HOME to the directory of Spark"
    export PYSPARK_DRIVER_PYTHON=${PYSPARK_DRIVER_PYTHON:-$python}
    local words
    read -r -a words <<<"${SPARK_ON_YARN:-} ${SPARK_HADOOP_OPTS:-} ${SPARK_EXTRA_OPTS:-}"
    submit=("$submit_path" "${words[@]}")
    [[ -z "${SPARK_MASTER:-}" ]] || submit+=(--master "$SPARK_MASTER")
    # with its quick compiler, Java starts Spark on one machine in half of the CPU time
    [[ "${SPARK_MASTER:-}" != local* ]] || export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1}"
    [[ -z "${NUM_EXECUTORS:-}" ]] || submit+=(--num-executors "$NUM_EXECUTORS")
    [[ -z "${EXECUTOR_CORES:-}" ]] || submit+=(--executor-cores "$EXECUTOR_CORES" --conf "spark.executor.memoryOverhead=${EXECUTOR_CORES}g")
    [[ -z "${EXECUTOR_MEM:-}" ]] || submit+=(--executor-memory "$EXECUTOR_MEM")
    submit+=("${SPARK_OPTIONS[@]}")
}

# Runs a job with these options of spark-submit, which come before the user's own. Exits if it stopped.
step() {
    local own
    read -r -a own <<<"$1"
    shift
    run_or_show "${submit[0]}" "${own[@]}" "${submit[@]:1}" "$@" ${S3_LOCAL_TEMP_DIR:+--local_temp_dir="$S3_LOCAL_TEMP_DIR"}
    go_on
}

index() {
    step "${SPARK_INDEX_DEFAULTS:-}" "$root/jobs/indexwarcs_cc_pyspark.py" --skip-existing ${WARC_BUCKET:+--input_base_url="$WARC_BUCKET"} \
        --output_base_url="$WARC_CDX_BUCKET" ${NUM_WARC_INPUT_PARTITIONS:+--num_input_partitions="$NUM_WARC_INPUT_PARTITIONS"} \
        "${INDEX_OPTIONS[@]}" "${arguments[@]}" "$WARC_MANIFEST"
}

zipnum() {
    step "${SPARK_ZIPNUM_DEFAULTS:-}" "$root/jobs/zipnumcluster_cc_pyspark.py" --output_base_url="$ZIPNUM_CLUSTER_DIR" \
        --partition_boundaries_file="$SPLIT_FILE" ${SHARDS:+--num_output_partitions="$SHARDS"} \
        "${ZIPNUM_OPTIONS[@]}" "${arguments[@]}" "$WARC_CDX"
}

take_crawl LIST "$@"
use_positional
check_crawl
need SPLIT_FILE
find_spark

! $index || index
zipnum
status=$worst
end bin/publish_index.sh
