"""The mrjob jobs and the tasks that they run. docs/engines.md describes them.

- `index_job`: the index job (jobs/indexwarcsjob.py)
- `recompress_job`: the recompress job (jobs/recompressjob.py)
- `add_job`: the job that adds clusters to a cluster (jobs/addclusterjob.py)
- `sample_job`: the sample job (jobs/samplecdxjob.py), also with two split files (jobs/dosample.py)
- `zipnum_job`: the ZipNum job (jobs/zipnumclusterjob.py)
- `count_job`: the base class of the counting jobs (jobs/*countjob.py) and of a user's own
- `archive_job`: what the index job and the counting jobs share
- `seqfileutils`: convert and write split files (jobs/seqfileutils.py)

`launcher/` has what runs on the machine from which a job is started, `nodes/` what runs on the nodes of a cluster.
The Spark jobs are in `cdxmill.spark`.
"""
