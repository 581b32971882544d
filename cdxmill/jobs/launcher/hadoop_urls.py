"""Paths and URLs as Hadoop understands them."""

from __future__ import annotations

import os

from cdxmill.jobs.launcher.mrjob_import import fully_qualify_hdfs_path


def is_url(path: str) -> bool:
    """Whether `path` has a scheme.

    >>> is_url("hdfs:///a"), is_url("/a")
    (True, False)
    """
    return "://" in path


def hadoop_url(path: str) -> str:
    """The URL of a path in Hadoop's default file system; a URL as it is.

    >>> hadoop_url("/a"), hadoop_url("s3://b")
    ('hdfs:///a', 's3://b')
    """
    if is_url(path) or path.startswith("/"):
        return str(fully_qualify_hdfs_path(path))
    user = os.environ.get("HADOOP_USER_NAME")
    return f"hdfs:///user/{user}/{path}" if user else str(fully_qualify_hdfs_path(path))
