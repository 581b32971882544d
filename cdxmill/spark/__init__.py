"""The engine on Apache Spark: the same tasks as in the processes of one machine. docs/engines.md describes it.

- `engine`: start Spark, run tasks on it, and show their progress
- `java`, `daemon`: start the processes of Spark faster, on this machine; why Java has failed
- `tasks`: what runs on the nodes: index an archive, sort the lines of files, write a shard
- `jobs`: archives -> one CDX file each; CDX files -> the shards of a cluster
- `scripts`: the command lines of the scripts for spark-submit

PySpark is imported only when Spark is started.
"""
