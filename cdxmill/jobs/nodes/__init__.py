"""What runs on the nodes of a cluster.

- `hadoop_task`: the start script of every task
- `index`: index archives
- `count`: count archives, add counts
- `lines`: sample lines, sort lines, write shards
- `inputs`, `output`: read a task's files, and put its files into the directory of the cluster

`lines`, `inputs`, `output` and what they import, such as cdxmill.storage.hadoop, need only Python 3.9 and what the archive
of the job contains.
"""
