"""lookup: a question -> the lines of a cluster, as pywb's CDX server would answer it."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.cluster.reader import open_cluster
from cdxmill.search.question import ONLY_THE_URL, Asking, Opened, Question
from cdxmill.storage.choose import PathOrUrl


def lookup(cluster: PathOrUrl, url: str, question: Question = ONLY_THE_URL) -> Iterator[bytes]:
    """The lines of `url` in the cluster at a path or URL, without line ends, as `question` wants them.

    Raises UsageError where the question cannot be answered or no cluster is there, InputError where it cannot
    be read or is damaged: never does it give less than there is.
    """
    asking = Asking(question)
    keys = asking.keys(url)
    with open_cluster(cluster, question.shard_rule) as reader:
        for lines in asking.answer(Opened(reader), keys):
            yield from lines
