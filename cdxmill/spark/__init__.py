"""The engine on Apache Spark: the same tasks as in the processes of one machine. docs/spark.md describes it.

- `engine`: start Spark, and run tasks on it
- `tasks`: what runs on the nodes: sort the lines of files, and write a shard
- `zipnum`: CDX files -> the shards of a cluster
- `remote`: a cluster at a URL
- `index_script`, `zipnum_script`: the command lines of webarchive-indexing (jobs/*_cc_pyspark.py)

PySpark is imported only when Spark is started.
"""
