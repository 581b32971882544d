"""What runs on the machine from which a job is started.

- `stream_job`: the base class of the jobs, and how a job is run as a command
- `mrjob_parts`: what is used of mrjob, with types; says so if mrjob is missing
- `old_settings`: what mrjob reads from older configurations

Hadoop and EMR:

- `hadoop_step`: the description of a step, and the arguments that mrjob needs for it
- `zipnum_on_hadoop`: checks, step, further files and switch of the ZipNum job
- `hadoop_inputs`: check the CDX files that Hadoop will read
- `hadoop_directory`: paths and URLs as Hadoop understands them; list, read and write directories of Hadoop
- `hadoop_failure`: find the reason why a step failed
- `node_archive`: pack the archive that is sent to the nodes
"""
