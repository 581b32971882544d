"""Read ranges of files, and write whole files: local, HTTP, S3, HDFS. No file format is known here."""
