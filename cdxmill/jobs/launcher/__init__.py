"""What runs on the machine from which a job is started.

Shared by all mrjob jobs:

- `stream_job`: their base class
- `run_job`: run a job as a command; messages and exit statuses
- `mrjob_types`, `mrjob_import`: types for the parts of mrjob that are used here; import it, or say that it is missing
- `old_settings`: what mrjob reads from older configurations

What the launchers of single jobs do:

- `index_on_hadoop`, `zipnum_on_hadoop`, `hadoop_switch`: on Hadoop
- `zipnum_local`: under the local runners; `reports`: what the reducers of both have written

Hadoop and EMR:

- `hadoop_step`: the description of a step, and the arguments that mrjob needs for it
- `hadoop_inputs`: check the CDX files that Hadoop will read
- `hadoop_directory`, `hadoop_files`: list, read and write directories of Hadoop
- `hadoop_urls`: paths and URLs as Hadoop understands them
- `hadoop_failure`: find the reason why a step failed
- `node_archive`: pack the archive that is sent to the nodes
"""
