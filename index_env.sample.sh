# shellcheck shell=bash
# Settings of the launchers in bin/. Copy this file, and fill the copy in:
#
#   cp index_env.sample.sh index_env.sh
#
# docs/launchers.md explains each. Write full URLs: hdfs://, s3:// (on a Hadoop of your own s3a://), file://.
# What has a # before it may stay as it is.

# Where the jobs run: hadoop (a cluster of your own), emr (Amazon), local (this machine).
export RUNNER="${RUNNER:-hadoop}"

# Step 1, bin/runindexwarcs.sh. A list of archives, one a line, such as s3://my-archive/warc.paths
export WARC_MANIFEST=""
# Where archives are whose path in the list is relative.
# export WARC_BUCKET="s3://my-archive"
# Where the .cdx.gz go, such as s3://my-index/cdx
export WARC_CDX_BUCKET=""
# A folder of every node for scratch files.
# export S3_LOCAL_TEMP_DIR="/mnt/tmp"

# Steps 2 and 3. The .cdx.gz, as a folder or a pattern, such as s3://my-index/cdx/*/*.cdx.gz
export WARC_CDX=""
# Step 2, bin/runsample.sh. A part of them, enough to sample.
# export WARC_CDX_SAMPLE="s3://my-index/cdx/00/*.cdx.gz"
# The split points, such as s3://my-index/splits.seq
export SPLIT_FILE=""
# How many shards; 300 if not set.
# export SHARDS="300"

# Step 3, bin/runzipcluster.sh. The cluster, such as s3://my-index/indexes
export ZIPNUM_CLUSTER_DIR=""
# A folder for the part-* besides.
# export ZIPNUM_OUTPUT_DIR="s3://my-index/parts"

# bin/publish_index.sh. Where the cluster is served from; where it is, if not set.
# export PUBLISH_DIR="s3://my-site/indexes"

# Options for the job of one step.
# INDEX_OPTIONS=(--python-bin /opt/cdxmill/bin/python --warcs-per-map 10 --max-failures 1%)
# SAMPLE_OPTIONS=(--scaler 1000)
# ZIPNUM_OPTIONS=(--location https://example.org/indexes)

# mrjob's settings: memory, queue, instances. mrjob.conf beside this file, or conf/mrjob-$RUNNER.conf, if not set.
# export MRJOB_CONF="/path/to/mrjob.conf"

# Your Hadoop, if `hadoop` is not on the PATH.
# export HADOOP_HOME="/usr/lib/hadoop"

# S3. Keys are best left to `aws configure` and the roles of machines. With RUNNER=hadoop those that are set here are
# passed to the tasks, where other users of the cluster may see them.
# export AWS_ACCESS_KEY_ID=""
# export AWS_SECRET_ACCESS_KEY=""
# export AWS_ENDPOINT_URL_S3="https://s3.example.org"
# export AWS_REGION="us-east-1"
