"""``torc hpc`` as a user types it."""

import json
from pathlib import Path

import pytest
from programs import Torc

RESEARCH = """
[client.hpc.profile_overrides.research]
default_account = "override"

[client.hpc.custom_profiles.research]
display_name = "Research Cluster"
description = "University cluster"
detect_env_var = "CLUSTER_NAME=research"
default_account = "my_project"

[[client.hpc.custom_profiles.research.partitions]]
name = "batch"
cpus_per_node = 48
memory_mb = 192000
max_walltime_secs = 259200

[[client.hpc.custom_profiles.research.partitions]]
name = "short"
cpus_per_node = 48
memory_mb = 192000
max_walltime_secs = 14400
shared = true

[[client.hpc.custom_profiles.research.partitions]]
name = "gpu"
cpus_per_node = 32
memory_mb = 256000
max_walltime_secs = 172800
gpus_per_node = 4
gpu_type = "A100"

[[client.hpc.custom_profiles.research.partitions]]
name = "large_scale"
cpus_per_node = 128
memory_mb = 512000
max_walltime_secs = 172800
min_nodes = 16
requires_explicit_request = true
"""
HERE = {"CLUSTER_NAME": "research"}


@pytest.fixture
def research(work: Path) -> None:
    (work / "torc.toml").write_text(RESEARCH)


@pytest.mark.usefixtures("research")
def test_list(torc: Torc) -> None:
    listed = torc("hpc", "list", env=HERE)
    assert listed.returncode == 0, listed.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in listed.stdout.splitlines() if "│" in line]
    assert rows == [
        ["Name", "Display Name", "Partitions", "Detected"],
        ["kestrel", "NREL Kestrel", "15", ""],
        ["research", "Research Cluster", "4", "✓"],
    ]
    kestrel, own = json.loads(torc("hpc", "list", "-f", "json", env={"NREL_CLUSTER": "kestrel"}).stdout)
    assert (kestrel["name"], kestrel["partition_count"], kestrel["detected"]) == ("kestrel", 15, True)
    assert own == {
        "name": "research",
        "display_name": "Research Cluster",
        "description": "University cluster",
        "partition_count": 4,
        "detected": False,
    }


@pytest.mark.usefixtures("research")
def test_detect(torc: Torc) -> None:
    """The exit code is an answer, too."""
    found = torc("hpc", "detect", env=HERE)
    assert (found.returncode, found.stdout) == (
        0,
        "research (Research Cluster), recognised by environment variable CLUSTER_NAME=research\n",
    )
    assert json.loads(torc("hpc", "detect", "-f", "json", env=HERE).stdout)["name"] == "research"
    nowhere = torc("hpc", "detect")
    assert (nowhere.returncode, nowhere.stdout) == (
        1,
        "This machine is on no known cluster. Known: kestrel, research\n",
    )
    answer = torc("hpc", "detect", "-f", "json")
    assert (answer.returncode, json.loads(answer.stdout)["detected"]) == (1, False)


@pytest.mark.usefixtures("research")
def test_show(torc: Torc) -> None:
    shown = json.loads(torc("hpc", "show", "research", "-f", "json", env=HERE).stdout)
    assert (shown["default_account"], shown["detected"], len(shown["partitions"])) == ("override", True, 4)
    text = torc("hpc", "show", "kestrel").stdout
    assert "Recognised by variable: NREL_CLUSTER=kestrel" in text
    assert "Partitions: 15 (3 with GPUs)" in text
    unknown = torc("hpc", "show", "kestral")
    assert (unknown.returncode, "did you mean 'kestrel'?" in unknown.stderr) == (2, True)


@pytest.mark.usefixtures("research")
def test_partitions(torc: Torc) -> None:
    def names(*arguments: str, env: dict[str, str] | None = None) -> list[str]:
        return [
            each["name"] for each in json.loads(torc("hpc", "partitions", *arguments, "-f", "json", env=env).stdout)
        ]

    assert names("research") == names(env=HERE) == ["batch", "short", "gpu", "large_scale"]
    assert names("research", "--gpu") == ["gpu"]
    assert names("research", "--cpu") == ["batch", "short", "large_scale"]
    assert names("research", "--shared") == ["short"]
    table = torc("hpc", "partitions", "research").stdout
    for cell in ("187 GiB", "3 d", "4 (A100)", "only when named; at least 16 nodes"):
        assert f"│ {cell} " in table
    nowhere = torc("hpc", "partitions")
    assert (nowhere.returncode, "name a profile (kestrel, research)" in nowhere.stderr) == (2, True)


@pytest.mark.usefixtures("research")
@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("--cpus 8 --memory 16g --walltime 2h", ["short", "batch", "gpu"]),
        ("--cpus 8 --memory 16G --walltime PT5H", ["batch", "gpu"]),
        ("--cpus 8 --memory 192000 --walltime 04:00:00", ["short", "batch", "gpu"]),
        ("--cpus 16 --memory 64g --walltime 8h --gpus 2", ["gpu"]),
        ("--partition large_scale --nodes 16", ["large_scale"]),
        ("--walltime 3600s", ["short", "batch", "gpu"]),
        ("--walltime 2-12:00:00", ["batch"]),
        ("", ["short", "batch", "gpu"]),
    ],
)
def test_match(torc: Torc, wish: str, expected: list[str]) -> None:
    done = torc("hpc", "match", "research", *wish.split(), "-f", "json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [each["name"] for each in answer["matching_partitions"]] == expected
    assert answer["best_partition"]["name"] == expected[0]
    assert not set(answer["not_matching"]) & set(expected)


@pytest.mark.usefixtures("research")
def test_match_detects_and_explains(torc: Torc) -> None:
    done = torc("hpc", "match", "--cpus", "100", "-f", "json", env=HERE)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["best_partition"], answer["profile"]) == (1, None, "research")
    assert answer["requirements"] == {"cpus": 100, "memory_mb": 1024, "walltime_secs": 3600, "gpus": 0, "nodes": 1}
    assert answer["not_matching"]["short"] == "its nodes have 48 CPUs"
    text = torc("hpc", "match", "--profile", "research", "--cpus", "100").stdout
    assert text.splitlines()[:3] == [
        "No partition of research fits 100 CPUs, 1 GiB, 1 h.",
        "Not fitting:",
        "  batch: its nodes have 48 CPUs",
    ]
    named = torc("hpc", "match", "research", "--partition", "large_scale", "--cpus", "64")
    assert (named.returncode, named.stdout.splitlines()[-1]) == (1, "  large_scale: its jobs have at least 16 nodes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "16gb"], "--memory: '16gb' is not a memory size: write digits and one of k, m, g, t"),
        (["--walltime", "2"], "--walltime: '2' is not a walltime: write for example '2h'"),
        (["--profile", "kestrel"], "the profile is given twice"),
        (["--partition", "shrt"], "unknown partition of kestrel 'shrt'; did you mean 'short'?"),
        (["--cpus", "0"], "--cpus"),
    ],
)
def test_what_cannot_be_matched_is_told(torc: Torc, arguments: list[str], message: str) -> None:
    done = torc("hpc", "match", "kestrel", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


PLUGIN = """
from torc_framework.api import Allocator, AllocationError, Capabilities, HpcProfile, Partition, hookimpl


class Peak(Allocator):
    name = "{name}"
    description = "A cluster"
    capabilities = Capabilities(can_allocate=True)

    def allocate(self, request):
        raise AllocationError("no")

    def find(self, names):
        return {{}}

    def alive(self, allocations):
        return {{}}

    def release(self, allocations):
        pass

    def cluster_profile(self):
        return HpcProfile("peak", partitions=(Partition("a", 1, 2, 3), Partition("a-stdby", 1, 2, 3)))


@hookimpl
def torc_executors():
    return [Peak]
"""


@pytest.fixture
def peak(torc: Torc, work: Path) -> None:
    (work / "torc_plugins").mkdir()
    (work / "torc_plugins" / "peak.py").write_text(PLUGIN.format(name="peak"))
    assert torc("plugins", "trust").returncode == 0


@pytest.mark.usefixtures("peak")
def test_a_generated_profile_can_be_put_into_the_configuration(torc: Torc, work: Path) -> None:
    options = ("--executor", "peak", "--name", "my-peak", "--skip-stdby", "-o", "new.toml")
    done = torc("hpc", "generate", *options)
    assert (done.returncode, done.stdout) == (0, "Wrote new.toml: profile my-peak with 1 partition(s)\n"), done.stderr
    (work / "torc.toml").write_text((work / "new.toml").read_text())
    assert torc("config", "validate").returncode == 0
    found = json.loads(torc("hpc", "detect", "-f", "json").stdout)
    assert (found["name"], found["display_name"]) == ("my-peak", "My-peak")
    again = torc("hpc", "generate", *options)
    assert (again.returncode, "new.toml is there already" in again.stderr) == (2, True)
    printed = torc("hpc", "generate", "--executor", "peak", "--display-name", "The Peak").stdout
    assert printed.startswith('[client.hpc.custom_profiles.peak]\ndisplay_name = "The Peak"\n')
    document = json.loads(torc("hpc", "generate", "--executor", "peak", "-f", "json").stdout)
    assert [each["name"] for each in document["profile"]["partitions"]] == ["a", "a-stdby"]


def test_a_cluster_without_partitions_makes_no_profile(torc: Torc, work: Path) -> None:
    """A profile of it would fit no job; the same if only standby partitions are left out."""
    (work / "torc_plugins").mkdir()
    plugin = work / "torc_plugins" / "peak.py"
    text = PLUGIN.format(name="peak")
    plugin.write_text(
        text.replace('Partition("a", 1, 2, 3), Partition("a-stdby", 1, 2, 3)', 'Partition("stdby", 1, 2, 3),')
    )
    assert torc("plugins", "trust").returncode == 0
    refused = torc("hpc", "generate", "--executor", "peak", "--skip-stdby", "-o", "new.toml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "all partitions of 'peak' are standby partitions: leave out --skip-stdby" in refused.stderr
    plugin.write_text(text.replace('Partition("a", 1, 2, 3), Partition("a-stdby", 1, 2, 3)', ""))
    assert torc("plugins", "trust").returncode == 0
    refused = torc("hpc", "generate", "--executor", "peak", "-o", "new.toml")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "peak reports no partitions of cluster 'peak'" in refused.stderr
    assert not (work / "new.toml").exists()


@pytest.mark.usefixtures("peak")
def test_who_describes_the_cluster(torc: Torc, work: Path) -> None:
    """It has to be clear."""
    (work / "torc_plugins" / "tor.py").write_text(PLUGIN.format(name="tor"))
    assert torc("plugins", "trust").returncode == 0
    several = torc("hpc", "generate")
    assert several.returncode == 2
    assert "several executors can describe a cluster; those that can: --executor " in several.stderr
    assert "--executor peak, " in several.stderr
    unable = torc("hpc", "generate", "--executor", "local")
    assert (unable.returncode, "executor 'local' cannot describe a cluster" in unable.stderr) == (2, True)
    unknown = torc("hpc", "generate", "--executor", "peek")
    assert (unknown.returncode, "did you mean 'peak'?" in unknown.stderr) == (2, True)
