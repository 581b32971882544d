#!/usr/bin/env bash
# Index the archives of a crawl and build its cluster on Spark, as webarchive-indexing's script of this name.
#
#   bin/run_index_ccpyspark.sh YEAR-WEEK LIST [SPLITS]
#
# This is bin/run_index_spark.sh, which has more options: see its --help. If spark_env.sh exists in the directory of
# this checkout, it is read first: it may set SPARK_HOME, SPARK_HADOOP_OPTS and HADOOP_CONF_DIR.
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
exec "$root/bin/run_index_spark.sh" "$@"
