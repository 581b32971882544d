"""The mrjob jobs and the tasks that they run. docs/jobs.md describes them.

Each module has one purpose:

- `index_job`: the index job (jobs/indexwarcsjob.py)
- `sample_job`: the sample job (jobs/samplecdxjob.py)
- `zipnum_job`: the ZipNum job (jobs/zipnumclusterjob.py)
- `dosample`: run the sample job and write both split files (jobs/dosample.py)
- `count_job`: the base class of the counting jobs (jobs/*countjob.py) and of a user's own
- `seqfileutils`: convert and write split files (jobs/seqfileutils.py)

The command lines of the Spark jobs; their work is in `cdxmill.spark` (docs/spark.md):

- `spark_index`: index archives (jobs/indexwarcs_cc_pyspark.py)
- `spark_zipnum`: build a ZipNum cluster (jobs/zipnumcluster_cc_pyspark.py)
- `spark_script`: the options that both have, and their exit statuses
- `cc_names`: the paths of indexes in Common Crawl

Shared by the three mrjob jobs:

- `stream_job`: their base class
- `run_job`: run a job as a command; messages and exit statuses
- `mrjob_types`: types for the parts of mrjob that are used here

Options and the launcher's work:

- `index_options`, `sample_options`, `zipnum_options`: the options of each job
- `index_on_hadoop`, `zipnum_on_hadoop`: what the launcher does on Hadoop
- `zipnum_local`: what the launcher of the ZipNum job does under the local runners

Hadoop and EMR, on the launcher's machine:

- `hadoop_step`: the description of a step, and the arguments that mrjob needs for it
- `hadoop_inputs`: check the CDX files that Hadoop will read
- `hadoop_folder`: list, read and write a folder through `hadoop fs`
- `hadoop_urls`: paths and URLs as Hadoop understands them
- `hadoop_failure`: find the reason why a step failed
- `node_archive`: pack the archive that is sent to the nodes

On the nodes:

- `hadoop_task`: the start script of every task
- `index_task`: index archives
- `count_task`: count archives, add counts
- `node_tasks`: sample lines, sort lines, write shards
- `node_output`: put a task's files into the cluster's folder
"""
