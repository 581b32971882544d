"""The tasks of the mrjob jobs. Hadoop's nodes run them, and mrjob's local runners, too.

- `hadoop_task`: the start script of every task on a node, `run_task`: find the task and its options
- `task_context`: what a task is given, and what it reports
- `archives`, `sample`, `zipnum`: the tasks of the jobs that read archives, and of the other two
- `files`: read a task's files, and put its files into the directory of the cluster

`archives` needs the libraries of cdxmill. All others, and what they import, need only Python 3.9 and what the archive of the
job contains.
"""
