"""Refuse settings of mrjob.conf that mrjob 0.7 does not have. It would ignore them, and start a cluster in another region.

python -m cdxmill.jobs.launcher.old_settings RUNNER [CONF]       what the launchers run before a job
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence

from cdxmill.errors import OK, UsageError
from cdxmill.jobs.launcher.mrjob_parts import load_opts_from_mrjob_confs, runner_class
from cdxmill.messages import fail

NOW = {
    "ami_version": "release_label",  # image_version exists, but such images do not
    "aws_availability_zone": "zone",
    "aws_region": "region",
    "aws_security_token": "aws_session_token",
    "base_tmp_dir": "local_tmp_dir",
    "bootstrap_cmds": "bootstrap",
    "bootstrap_files": "bootstrap",
    "bootstrap_python_packages": "bootstrap",
    "bootstrap_scripts": "bootstrap",
    "check_emr_status_every": "check_cluster_every",
    "cloud_upload_part_size": "cloud_part_size_mb",
    "ec2_core_instance_bid_price": "core_instance_bid_price",
    "ec2_core_instance_type": "core_instance_type",
    "ec2_instance_type": "instance_type",
    "ec2_master_instance_bid_price": "master_instance_bid_price",
    "ec2_master_instance_type": "master_instance_type",
    "ec2_slave_instance_type": "core_instance_type",
    "ec2_task_instance_bid_price": "task_instance_bid_price",
    "ec2_task_instance_type": "task_instance_type",
    "emr_api_params": "extra_cluster_params",
    "emr_applications": "applications",
    "emr_job_flow_id": "cluster_id",
    "emr_job_flow_pool_name": "pool_name",
    "emr_tags": "tags",
    "fs_sync_secs": "cloud_fs_sync_secs",
    "hadoop_home": "hadoop_bin",
    "hadoop_streaming_jar_on_emr": "hadoop_streaming_jar",
    "hdfs_scratch_dir": "hadoop_tmp_dir",
    "interpreter": "python_bin",
    "max_hours_idle": "max_mins_idle, in minutes",
    "num_ec2_core_instances": "num_core_instances",
    "num_ec2_instances": "num_core_instances, without the master node",
    "num_ec2_task_instances": "num_task_instances",
    "pool_emr_job_flows": "pool_clusters",
    "python_archives": "py_files",
    "s3_log_uri": "cloud_log_dir",
    "s3_scratch_uri": "cloud_tmp_dir",
    "s3_sync_wait_time": "cloud_fs_sync_secs",
    "s3_tmp_dir": "cloud_tmp_dir",
    "s3_upload_part_size": "cloud_part_size_mb",
    "setup_cmds": "setup",
    "setup_scripts": "setup",
    "ssh_tunnel_to_job_tracker": "ssh_tunnel",
    "steps_python_bin": "python_bin",
}
"""The settings of mrjob 0.2 to 0.6 that have another name in 0.7. Those of 0.5.4 are in its docs/whats-new.rst."""


def check_conf(runner: str, confs: Sequence[str] | None) -> None:
    """Raise UsageError if a file has a setting for this runner that mrjob does not know. None: the usual files."""
    known = runner_class(runner).OPT_NAMES
    for path, settings in _load(runner, confs):
        # a setting without a value does nothing, also in mrjob
        unknown = sorted(
            name for name, value in (settings or {}).items() if value is not None and name not in known
        )
        if unknown:
            raise UsageError(
                f"{path}: settings that mrjob does not know: {', '.join(map(_named, unknown))};"
                " rename or remove them (mrjob would ignore them)"
            )


def _load(runner: str, confs: Sequence[str] | None) -> Sequence[tuple[str, Mapping[str, object] | None]]:
    """The settings of each file. mrjob loads them again for the job, and logs only then which files it uses."""
    logger = logging.getLogger("mrjob.conf")
    logger.disabled = True
    try:
        loaded: Sequence[tuple[str, Mapping[str, object] | None]] = load_opts_from_mrjob_confs(runner, confs)
    finally:
        logger.disabled = False
    return loaded


def _named(setting: str) -> str:
    return f"{setting} (now {NOW[setting]})" if setting in NOW else setting


def main(arguments: Sequence[str]) -> int:
    """Check the files. Returns the exit status."""
    runner, *confs = arguments
    try:
        check_conf(runner, confs or None)
    except UsageError as error:
        return fail(error, error.status)
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
