"""Functions that make, copy and check ZipNum clusters, and find split points for them."""

from __future__ import annotations

from cdxmill.api.calls import takes
from cdxmill.api.results import ClusterResult, SampleResult, VerifyResult, result_of
from cdxmill.commands.clusters import build as build_command
from cdxmill.commands.clusters import publish as publish_command
from cdxmill.commands.clusters import verify as verify_command
from cdxmill.commands.clusters.zipnum import build_cluster, output_place, zipnum_options
from cdxmill.commands.per_archive.index import index_options
from cdxmill.commands.sample import sample as sample_lines
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.options.clusters import Building, Publishing, Sampling, Verifying, Zipnum
from cdxmill.options.option import required_paths
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failures


@takes(Sampling)
def sample(asked: Sampling) -> SampleResult:
    """Find the split points that divide the lines of CDX files into `shards` shards of about the same size.

    With `output`, for example "splits.txt", they are also written there, and as a SequenceFile beside it. Raises
    UsageError if one of the two exists and `replace` is not given.
    """
    failures = Failures(printed=False)
    points = sample_lines(asked, failures)
    return SampleResult(points, failures.items)


@takes(Zipnum)
def zipnum(asked: Zipnum) -> ClusterResult:
    """Build a ZipNum cluster in the directory `output` from CDX files: files, directories, globs or URLs.

    Without `shards` and `splits`, the size of the CDX files decides the number of shards.
    A corrupt file adds no lines and is in the failures of the result. Raises UsageError for invalid arguments,
    StoppedError if the cluster cannot be written. If `output` has another cluster, `replace` is needed.
    """
    failures = Failures(printed=False)
    directory = output_place(asked, is_local=True)
    options = zipnum_options(asked, asked.convert)
    done = build_cluster(find_cdx_files(required_paths(asked.cdx), failures), directory, options, failures)
    return result_of(ClusterResult, done, failures)


@takes(Building)
def build(asked: Building) -> ClusterResult:
    """Index archives and build a ZipNum cluster from the indexes, in the directory `output`.

    `inputs` are archives, directories, globs or URLs. The index of each archive is kept in `output`/cdx; the same call
    indexes only what is missing there. Raises as `zipnum` does.
    """
    failures = Failures(printed=False)
    directory = output_place(asked, is_local=True)
    archives = find_archives(asked, failures)
    options = index_options(asked, Rule.RENEW), zipnum_options(asked)
    done = build_command.build(archives, directory, *options, failures)
    return result_of(ClusterResult, done.cluster, failures)


@takes(Publishing)
def publish(asked: Publishing) -> int:
    """Check `cluster`, copy it to the directory or URL `destination`, and write its index there.

    Returns the number of shards that were copied. The arguments are the options of `cdxmill publish`. Raises
    UsageError if the cluster is not finished, or if the destination has another cluster and `replace` is not given,
    InputError if it is corrupt, StoppedError if it cannot be written.
    """
    return publish_command.publish(asked).copied


@takes(Verifying)
def verify(asked: Verifying) -> VerifyResult:
    """Check that the cluster at a path or URL is complete and that its files match.

    With `against`, its lines must be exactly those of these CDX files. With `archives`, the record of each line is read, or
    of `sample` lines. Everything that is wrong is in the failures of the result. Raises UsageError if there is no cluster.
    """
    failures = Failures(printed=False)
    done = verify_command.verify(asked, failures)
    return result_of(VerifyResult, done, failures)
