"""Options of the executor ``ssh``: values that are refused, and which hosts they name."""

from pathlib import Path
from typing import Any

import pytest
from torc_ssh.addresses import parse_address
from torc_ssh.executor.host_sizes import HostSize, check_named_hosts, parse_host_sizes, size_of
from torc_ssh.executor.launcher import SshLauncher
from torc_ssh.executor.options import SshOptions

from torc_framework.api import ConfigError, LaunchError, RunnerContext

GIB = 1024**3


def context(api_url: str = "http://127.0.0.1:9/torc-service/v1") -> RunnerContext:
    return RunnerContext(1, 1, "/out", "/work", api_url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a: cpus=4 memory=8g gpus=1; b: cpus=2", {"a": HostSize(4, 8 * GIB, 1), "b": HostSize(2)}),
        ("a:cpus=4,gpus=0;", {"a": HostSize(4, gpus=0)}),
        ("c@Host:2222: memory=512m", {"host": HostSize(memory_bytes=GIB // 2)}),
        ("[fd77::11]:22: cpus=1", {"fd77::11": HostSize(1)}),
    ],
)
def test_sizes_of_hosts(text: str, expected: dict[str, HostSize]) -> None:
    assert parse_host_sizes(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "'a' names no size"),
        ("a: cpus", "'cpus' of host 'a' is no size"),
        ("a: disks=4", "'disks=4' of host 'a' is no size"),
        ("a: cpus=0", "cpus of host 'a': 0 is too small"),
        ("a: cpus=-1", "cpus of host 'a': '-1' is no whole number"),
        ("a: memory=x", "memory of host 'a'"),
        ("a:", "host 'a' has no size"),
        ("a: cpus=1; A: cpus=2", "host 'A' appears twice"),
        ("a b: cpus=1", "contains ' '"),
    ],
)
def test_malformed_sizes_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SshOptions(host_sizes=text)


def test_a_size_of_a_host_that_is_not_used_is_refused() -> None:
    sizes = parse_host_sizes("b: cpus=2")
    assert size_of(sizes, parse_address("u@b:22")) == HostSize(2)
    with pytest.raises(ConfigError, match=r"names 'b', which is none of the hosts: a, c"):
        check_named_hosts(sizes, [parse_address("a"), parse_address("c")])


@pytest.mark.parametrize(
    "values",
    [
        {"memory_cgroup": "yes"},
        {"lost_after_s": 0.0},
        {"keepalive_s": -1.0},
        {"connect_timeout_s": float("nan")},
        {"hosts": "a", "hosts_file": "f"},
        {"remote_dir": ".."},
        {"remote_dir": ""},
    ],
)
def test_invalid_options_are_refused(values: dict[str, Any]) -> None:
    (name, *_) = values
    with pytest.raises(ConfigError, match=name):
        SshOptions(**values)


def test_each_host_is_a_site(tmp_path: Path) -> None:
    assert SshLauncher.sites(SshOptions(hosts="a, u@b:2222 ,[fd77::11]"), context()) == ["a", "u@b:2222", "[fd77::11]"]
    file = tmp_path / "hosts"
    file.write_text("a # first\n\nb\n")
    assert SshLauncher.sites(SshOptions(hosts_file=str(file)), context()) == ["a", "b"]


@pytest.mark.parametrize("hosts", ["a,a", "a,u@A:22", "-oProxyCommand=x", "a b", "a,$(x)"])
def test_hosts_that_are_no_addresses_are_refused(hosts: str) -> None:
    with pytest.raises(ConfigError, match="hosts of executor ssh"):
        SshLauncher.sites(SshOptions(hosts=hosts), context())


def test_without_hosts_the_server_is_asked() -> None:
    with pytest.raises(LaunchError, match="the remote workers of workflow 1 cannot be read"):
        SshLauncher.sites(SshOptions(), context())
