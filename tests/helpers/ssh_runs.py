"""Runs of workflows by the executor ``ssh`` on real hosts, and what they left."""

from collections import Counter
from pathlib import Path
from typing import Final

from ssh_hosts import USER, SshHosts

ALL: Final = "h1,h2,h3,h4"
MARK: Final = 'echo "$TORC_JOB_NAME" >> ~/ran'
"""What a job runs to say that it has begun; see `marks`."""
QUICK: Final = ("--keepalive-s", 1, "--connect-timeout-s", 5)
"""Options with which a lost connection is noticed within seconds."""


def by_ssh(hosts: str = ALL, *options: str | int) -> list[str | int]:
    """Return the words that follow ``torc run SPEC``."""
    return ["--executor", "ssh", "--hosts", hosts, *options]


def marks(hosts: SshHosts, *names: str) -> Counter[str]:
    """Return how often each word was written to ``~/ran`` on these hosts, which run."""
    words: Counter[str] = Counter()
    for name in names:
        path = hosts.folder / "hosts" / name / "home" / USER / "ran"
        words.update(path.read_text().split() if path.exists() else [])
    return words


def home_of(hosts: SshHosts, name: str) -> Path:
    """Return the home of the hosts' user on a host, as this machine sees it."""
    return hosts.folder / "hosts" / name / "home" / USER
