#!/usr/bin/env bash
# Index the archives of a crawl and build its cluster on Spark, as webarchive-indexing's script of this name.
#
#   bin/run_index_ccpyspark.sh YEAR-WEEK LIST [SPLITS]
#
# This is bin/run_index_spark.sh, which has more options: see its --help. If spark_env.sh exists in the directory of
# this checkout, it is read first: it may set SPARK_HOME, SPARK_HADOOP_OPTS and HADOOP_CONF_DIR. spark-submit gets what that
# script gives it: --master yarn, 1 executor with 2 cores, and its memory, tries and timeouts. SPARK_ON_YARN, NUM_EXECUTORS,
# EXECUTOR_CORES, EXECUTOR_MEM and NUM_WARC_INPUT_PARTITIONS change this; SPARK_OPTIONS in index_env.sh comes last.
# Exit status: 0 success, 1 some inputs failed (each is reported, the rest is done), 2 wrong usage or settings, 3 stopped.
source "$(dirname -- "${BASH_SOURCE[0]}")/launch-common.sh"

case "${1:-}" in
    -h | --help) usage && exit 0 ;;
esac
[[ $# -ge 2 ]] || fail "YEAR-WEEK and LIST are missing; see bin/$launcher --help"
if [[ -r "$root/spark_env.sh" ]]; then
    set -a +eu
    # shellcheck source=/dev/null
    source "$root/spark_env.sh"
    set +a -eu
fi
words=()
for word in "$@"; do
    [[ "$word" == -* ]] || words+=("$word")
done
week=${words[0]:-} list=${words[1]:-}
export SPARK_ON_YARN=${SPARK_ON_YARN---master yarn} NUM_EXECUTORS=${NUM_EXECUTORS:-1} EXECUTOR_CORES=${EXECUTOR_CORES:-2}
export NUM_WARC_INPUT_PARTITIONS=${NUM_WARC_INPUT_PARTITIONS:-10}
if [[ -n "$list" ]]; then
    export EXECUTOR_MEM=${EXECUTOR_MEM:-2g}
    [[ $NUM_WARC_INPUT_PARTITIONS -ge $((NUM_EXECUTORS * EXECUTOR_CORES)) ]] ||
        fail "NUM_WARC_INPUT_PARTITIONS=$NUM_WARC_INPUT_PARTITIONS: fewer than all executors have cores ($NUM_EXECUTORS * $EXECUTOR_CORES); set more"
else
    export EXECUTOR_MEM=${EXECUTOR_MEM:-3g}
    # the jobs of 2018 and later write the CDX files of a crawl there, without step 1
    export WARC_CDX=${WARC_CDX:-s3a://commoncrawl-index-temp/CC-MAIN-$week/cdx/segments/*/*/*.cdx.gz}
fi
both='--conf spark.serializer=org.apache.spark.serializer.KryoSerializer --conf spark.task.maxFailures=5'
both+=' --conf spark.core.connection.ack.wait.timeout=600s --conf spark.network.timeout=300s'
both+=' --conf spark.shuffle.io.maxRetries=50 --conf spark.shuffle.io.retryWait=600s --conf spark.locality.wait=1s'
both+=' --conf spark.executorEnv.LD_LIBRARY_PATH=/usr/lib/hadoop/lib/native'
export SPARK_INDEX_DEFAULTS="$both --conf spark.driver.memory=3g"
export SPARK_ZIPNUM_DEFAULTS="$both --conf spark.driver.memory=6g --conf spark.driver.maxResultSize=4g"
SPARK_ZIPNUM_DEFAULTS+=' --conf spark.io.compression.codec=zstd --conf spark.checkpoint.compress=true'
exec "$root/bin/run_index_spark.sh" "$@"
