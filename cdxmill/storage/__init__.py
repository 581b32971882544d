"""Read ranges of files, and write whole files: local, HTTP, S3, HDFS, and files in a WACZ. No other format is known here."""
