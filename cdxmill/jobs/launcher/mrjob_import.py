"""The names of mrjob that the jobs use. Where mrjob is not installed, importing this module ends the program in one line."""

from __future__ import annotations

import sys
from contextlib import suppress

from cdxmill.messages import say
from cdxmill.version import install_extra

__all__ = [
    "HadoopFilesystem",
    "MRJob",
    "MRStep",
    "StepFailedException",
    "fully_qualify_hdfs_path",
    "interpret_task_logs",
    "load_opts_from_mrjob_confs",
    "runner_class",
]

# mrjob imports distutils. That of setuptools takes a third of the start, so Python's own is used where there is one.
if sys.version_info < (3, 12):
    with suppress(ImportError, AttributeError):
        from _distutils_hack import remove_shim  # type: ignore[import-untyped]

        remove_shim()

try:
    from mrjob.conf import load_opts_from_mrjob_confs
    from mrjob.fs.hadoop import HadoopFilesystem
    from mrjob.hadoop import fully_qualify_hdfs_path
    from mrjob.job import MRJob
    from mrjob.logs.task import _interpret_task_logs as interpret_task_logs
    from mrjob.runner import _runner_class as runner_class
    from mrjob.step import MRStep, StepFailedException
except ImportError as error:
    say(
        f"mrjob {'is not installed' if error.name == 'mrjob' else f'cannot be imported ({error})'};"
        f" {install_extra('jobs')}"
    )
    sys.exit(2)
