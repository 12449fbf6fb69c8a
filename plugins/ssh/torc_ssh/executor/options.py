"""The options of the executor ``ssh``."""

from typing import Final

from attrs import define

from torc_framework.api import ConfigError, option
from torc_ssh.executor.host_sizes import HostSize, parse_host_sizes

MEMORY_CGROUP: Final = ("auto", "off", "require")
_POSITIVE: Final = ("lost_after_s", "connect_timeout_s", "keepalive_s")


@define
class SshOptions:
    """Which hosts run jobs, and how they are reached."""

    hosts: str = option(
        "",
        "Hosts that run jobs: [user@]host[:port], separated by commas. Without this and --hosts-file: the workflow's "
        "remote workers.",
        metavar="HOSTS",
    )
    hosts_file: str = option("", "File that names one host on each line; # begins a comment.", metavar="FILE")
    host_sizes: str = option(
        "",
        "What hosts offer, instead of what is found there: 'a: cpus=4 memory=8g gpus=1; b: cpus=2'.",
        metavar="SIZES",
    )
    shared_dir: bool = option(
        False, "The working folder and the output folder have the same paths on all hosts; no file is copied."
    )
    remote_dir: str = option(
        "torc_work", "Folder on the hosts for working folders of workflows, relative to the home folder.", metavar="DIR"
    )
    ssh_command: str = option(
        "",
        "Use this program, such as ssh or 'ssh -F FILE', and its control socket instead of the built-in SSH.",
        metavar="COMMAND",
    )
    python: str = option("python3", "Python 3.8 or newer on the hosts: a name or an absolute path.", metavar="PROGRAM")
    shell: str = option(
        "", "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given.", metavar="SHELL"
    )
    memory_cgroup: str = option(
        "auto",
        "Control groups that hold attempts to their memory with --enforce-limits: auto (where they can be made), off "
        "or require.",
        metavar="MODE",
    )
    lost_after_s: float = option(
        300.0,
        "A host that does not answer for this time has lost its jobs: they run again on other hosts.",
        metavar="SECONDS",
    )
    connect_timeout_s: float = option(30.0, "Longest time for one attempt to connect to a host.", metavar="SECONDS")
    keepalive_s: float = option(
        15.0,
        "Time between two questions whether a host is still there; three without an answer end the connection.",
        metavar="SECONDS",
    )
    tunnel: bool = option(
        False, "Jobs reach the server through the SSH connection: TORC_API_URL names a port of the host itself."
    )

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for invalid values, before any host is connected to."""
        if self.memory_cgroup not in MEMORY_CGROUP:
            expected = ", ".join(MEMORY_CGROUP)
            raise ConfigError(f"memory_cgroup of executor ssh is {self.memory_cgroup!r}; it must be one of {expected}")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} of executor ssh is {getattr(self, name):g}; it must be greater than 0")
        if self.hosts and self.hosts_file:
            raise ConfigError("executor ssh: give either hosts or hosts_file, not both")
        if not self.remote_dir.strip("/.") or "\0" in self.remote_dir:
            raise ConfigError(f"remote_dir of executor ssh is {self.remote_dir!r}; expected a folder such as torc_work")
        self.sizes()

    def sizes(self) -> dict[str, HostSize]:
        """Return what `host_sizes` says, by host.

        Raises:
            ConfigError: the text is malformed.
        """
        return parse_host_sizes(self.host_sizes)
