"""Amazon's EMR, IAM and S3 on loopback: moto's, with steps that end at once as `Emr.nodes` says.

moto keeps what is asked of it and runs nothing; a step stays as it was submitted. Here each step
is handed to `nodes`, which puts into S3 what the tasks would, and is then COMPLETED; FAILED if that raises.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import boto3  # type: ignore[import-untyped]
from moto.server import ThreadedMotoServer

if (
    TYPE_CHECKING
):  # moto's EMR and EC2 take 100 MB, which all processes of the tests would have, and copy with each fork
    from moto.core.responses import ActionResult
    from moto.emr.models import Cluster, ElasticMapReduceBackend, Step
    from moto.emr.responses import ElasticMapReduceResponse

REGION = "us-east-1"
BUCKET = "archive-bucket"
_ACCOUNT = "123456789012"  # the one that moto takes everybody for
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": REGION,
}


class Submitted(NamedTuple):
    """A step as it came in: the arguments of command-runner.jar, and all of S3 at that time."""

    args: list[str]
    files: dict[str, bytes]

    def option(self, name: str) -> str:
        """The value of an option of Hadoop streaming, which stands once."""
        assert self.args.count(name) == 1, self.args
        return self.args[self.args.index(name) + 1]

    def options(self, name: str) -> dict[str, str]:
        """The values of an option that stands several times, NAME=VALUE each."""
        values = [value for before, value in zip(self.args, self.args[1:], strict=False) if before == name]
        return dict(value.split("=", 1) for value in values)


class Emr:
    """The server: what was submitted to it, and what its nodes do."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.s3: Any = boto3.client("s3", endpoint_url=url, region_name=REGION)
        self.emr: Any = boto3.client("emr", endpoint_url=url, region_name=REGION)
        self.asked: list[dict[str, Any]] = []  # what RunJobFlow got
        self.steps: list[Submitted] = []
        self.trouble: list[Exception] = []  # why steps failed
        self.nodes: Callable[[Submitted], None] = lambda step: None

    def put(self, key: str, data: bytes) -> str:
        """Put an object into the bucket; its URL."""
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=data)
        return f"s3://{BUCKET}/{key}"

    def objects(self) -> dict[str, bytes]:
        """Everything in the bucket, by URL."""
        found = self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {f"s3://{BUCKET}/{each['Key']}": self._get(each["Key"]) for each in found}

    def _get(self, key: str) -> bytes:
        data: bytes = self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return data

    def clusters(self) -> list[dict[str, Any]]:
        """All clusters, each as DescribeCluster, its groups of instances and bootstrap actions tell."""
        ids = [each["Id"] for each in self.emr.list_clusters()["Clusters"]]
        return [
            {
                **self.emr.describe_cluster(ClusterId=each)["Cluster"],
                **self.emr.list_instance_groups(ClusterId=each),
                **self.emr.list_bootstrap_actions(ClusterId=each),
            }
            for each in ids
        ]


@contextmanager
def emr_server() -> Iterator[Emr]:
    """A server without clusters, with an empty bucket, for as long as the context lasts."""
    from moto.emr.models import emr_backends

    emr_backends[_ACCOUNT][REGION].reset()
    with patch.dict(os.environ, {**KEYS, "MOTO_IAM_LOAD_MANAGED_POLICIES": "true"}):
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield from _running(Emr(f"http://{host}:{port}"))
        finally:
            server.stop()


def _running(emr: Emr) -> Iterator[Emr]:
    emr.s3.create_bucket(Bucket=BUCKET)
    with ExitStack() as patches:
        for of, name, does in _changes(emr):
            patches.enter_context(patch.object(of, name, does))
        yield emr
    for url in emr.objects():
        emr.s3.delete_object(Bucket=BUCKET, Key=url.removeprefix(f"s3://{BUCKET}/"))


def _changes(emr: Emr) -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """What is done besides what moto does: class, method, and what stands in its place."""
    from moto.emr.models import Cluster, ElasticMapReduceBackend
    from moto.emr.responses import ElasticMapReduceResponse

    add_steps, describe_step = Cluster.add_steps, ElasticMapReduceBackend.describe_step
    add_applications, run_job_flow = Cluster.add_applications, ElasticMapReduceResponse.run_job_flow
    seen: dict[str, threading.Event] = {}

    def run(cluster: Cluster, steps: list[dict[str, Any]]) -> list[Step]:
        added = add_steps(cluster, steps)
        for step in added:
            step.state = "RUNNING"
            seen[step.id] = threading.Event()
            # in its own time: what `nodes` puts into S3 is a request to this server
            threading.Thread(target=_run, args=(emr, cluster, step, seen[step.id]), daemon=True).start()
        return added

    def look(backend: ElasticMapReduceBackend, cluster_id: str, step_id: str) -> Step | None:
        """mrjob frees the cluster for other jobs when it sees its step run."""
        threading.Timer(0.2, seen[step_id].set).start()
        return describe_step(backend, cluster_id, step_id)

    def with_version(cluster: Cluster, applications: list[dict[str, Any]]) -> None:
        """Amazon tells which Hadoop a release has; moto does not, and mrjob asks."""
        add_applications(cluster, [{"version": "3.4.2", **each} for each in applications])

    def note(response: ElasticMapReduceResponse) -> ActionResult:
        emr.asked.append(json.loads(response.body))
        return run_job_flow(response)

    yield Cluster, "add_steps", run
    yield ElasticMapReduceBackend, "describe_step", look
    yield Cluster, "add_applications", with_version
    yield ElasticMapReduceResponse, "run_job_flow", note


def _run(emr: Emr, cluster: Cluster, step: Step, seen: threading.Event) -> None:
    submitted = Submitted(list(step.args), emr.objects())
    emr.steps.append(submitted)
    try:
        emr.nodes(submitted)
        state = "COMPLETED"
    except Exception as error:
        emr.trouble.append(error)
        state = "FAILED"
    seen.wait()
    cluster.state = "WAITING"
    step.state = state
