"""Pick how HDFS is reached: by WebHDFS, or by the command `hadoop fs` where that cannot be used.

A command starts a JVM, which takes a second. So it is used only

- if the configuration says that WebHDFS needs a ticket or TLS, or is turned off
- if there is a hadoop command, and WebHDFS does not answer the first request, or its address is not known

This is the same for commands, for the launchers of jobs and for the tasks on the nodes.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from cdxmill.errors import InputError, UsageError
from cdxmill.messages import say
from cdxmill.storage.hadoop import hadoop_fs
from cdxmill.storage.hadoop.site import hadoop_command, parts_of, why_no_web_hdfs


def storage_of(url: str) -> Any:
    """The module `hdfs` or `hadoop_fs`, whose functions keep the same contract. The second is announced once on stderr."""
    places = map(os.environ.get, ("HADOOP_CONF_DIR", "CDXMILL_WEBHDFS"))
    return _picked(parts_of(url)[0], *places)


@lru_cache(maxsize=8)
def _picked(authority: str, *places: str | None) -> Any:
    try:
        reason = why_no_web_hdfs()
        if not reason:
            from cdxmill.storage.hadoop import hdfs

            if hadoop_command():
                hdfs.check(f"hdfs://{authority}/")
            return hdfs
    except ImportError as error:  # a node's Python that has an old OpenSSL
        reason = f"urllib3 cannot be used ({error})"
    except InputError as error:
        reason = error.reason
    except UsageError as error:
        if not hadoop_command():
            raise
        reason = str(error)
    _say_once(f"note: {reason}; hadoop fs is used instead of WebHDFS, which takes longer")
    return hadoop_fs


@lru_cache(maxsize=64)
def _say_once(text: str) -> None:
    say(text)
