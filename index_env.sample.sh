# shellcheck shell=bash
# Settings of the launchers in bin/. Copy this file, and fill in the copy:
#
#   cp index_env.sample.sh index_env.sh
#
# docs/engines.md explains each setting. Write full URLs: hdfs://, s3:// (on your own Hadoop s3a://), file://.
# Settings that are commented out are optional.

# Where the jobs run: hadoop (your own Hadoop), emr (Amazon EMR) or local (this machine).
export RUNNER="${RUNNER:-hadoop}"

# Step 1, bin/runindexwarcs.sh: index the archives. The list of archives, one per line, such as s3://my-archive/warc.paths
export WARC_MANIFEST=""
# Directory or URL that relative paths of the list start from.
# export WARC_BUCKET="s3://my-archive"
# Directory or URL for the .cdx.gz files, such as s3://my-index/cdx
export WARC_CDX_BUCKET=""
# Directory for scratch files on every node.
# export S3_LOCAL_TEMP_DIR="/mnt/tmp"

# Steps 2 and 3: the .cdx.gz files of step 1. A directory or a pattern, such as s3://my-index/cdx/*/*.cdx.gz
export WARC_CDX=""
# Step 2, bin/runsample.sh: sample the .cdx.gz files for split points. To sample only a part of the files:
# export WARC_CDX_SAMPLE="s3://my-index/cdx/00/*.cdx.gz"
# The file for the split points, such as s3://my-index/splits.seq
export SPLIT_FILE=""
# Number of shards. Default: 300.
# export SHARDS="300"

# Step 3, bin/runzipcluster.sh: build the ZipNum cluster. Its directory, such as s3://my-index/indexes
export ZIPNUM_CLUSTER_DIR=""
# Directory for a copy of the part-* files.
# export ZIPNUM_OUTPUT_DIR="s3://my-index/parts"

# Step 4, bin/publish_index.sh: copy the cluster to the directory or URL that it is served from. Default: ZIPNUM_CLUSTER_DIR.
# export PUBLISH_DIR="s3://my-site/indexes"

# Further options for the job of one step.
# INDEX_OPTIONS=(--python-bin /opt/cdxmill/bin/python --warcs-per-map 10 --max-failures 1%)
# SAMPLE_OPTIONS=(--scaler 1000)
# ZIPNUM_OPTIONS=(--location https://example.org/indexes)

# mrjob's settings: memory, queue, instances. Default: mrjob.conf beside this file, else conf/mrjob-$RUNNER.conf.
# export MRJOB_CONF="/path/to/mrjob.conf"

# Your Hadoop, if `hadoop` is not on the PATH.
# export HADOOP_HOME="/usr/lib/hadoop"

# S3. Set keys here only if you cannot use `aws configure` or the roles of machines. With RUNNER=hadoop, these values are
# sent to the tasks in a file that only the user of the job can read, if a URL of the job is one of S3.
# export AWS_ACCESS_KEY_ID=""
# export AWS_SECRET_ACCESS_KEY=""
# export AWS_ENDPOINT_URL_S3="https://s3.example.org"
# export AWS_REGION="us-east-1"
