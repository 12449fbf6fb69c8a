"""Workflows on real hosts: ends, files, logs, connections, and hosts of different sizes."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from run_results import EndedJob, ended_jobs
from ssh_hosts import ClientTorc
from ssh_runs import ALL, MARK, by_ssh, home_of, marks
from waiting import eventually

pytestmark = pytest.mark.e2e

ENDINGS: dict[str, Any] = {
    "name": "endings",
    "resource_requirements": [{"name": "quick", "num_cpus": 1, "memory": "50m", "runtime": "PT2S"}],
    "jobs": [
        {"name": "good", "command": "true"},
        {"name": "seven", "command": "exit 7"},
        {"name": "high", "command": "exit 139"},
        {"name": "crash", "command": "kill -SEGV $$"},
        {"name": "killed", "command": "kill -KILL $$"},
        {"name": "missing", "command": "no-such-program"},
        {"name": "not_a_program", "command": "/etc/passwd"},
        {"name": "late", "command": "exec sleep 60", "resource_requirements": "quick"},
        {"name": "left_behind", "command": "sleep 100 & exit 3"},
        {"name": "after", "command": "true", "depends_on": ["good"]},
        {"name": "never", "command": "true", "depends_on": ["seven"]},
    ],
}


def essence(job: EndedJob) -> tuple[object, ...]:
    """Return what has to be the same whichever executor ran a job."""
    observed = dict(job.result.get("observation") or {})
    seen = {name: observed.get(name) for name in ("exit_code", "signal", "launch_error", "stop_reason")}
    return job.status, job.code, job.exit_class, job.reason, job.attempts, seen


def test_ends_are_those_of_the_local_executor(client_torc: ClientTorc) -> None:
    client_torc.write("w.yaml", ENDINGS)
    client_torc("run", "w.yaml", code=1)
    client_torc("run", "w.yaml", *by_ssh(), code=1)
    local, remote = ended_jobs(client_torc, 1), ended_jobs(client_torc, 2)
    assert {name: essence(job) for name, job in remote.items()} == {name: essence(job) for name, job in local.items()}
    assert {job.host for job in remote.values() if job.attempts} <= {*ALL.split(",")}
    assert remote["seven"].result["cpu_time_s"] is not None


STREAMS: dict[str, Any] = {
    "name": "streams",
    "jobs": [
        {"name": mode, "command": "echo one; echo two >&2; echo three", "stdio": mode}
        for mode in ("separate", "combined", "no_stdout", "no_stderr", "none")
    ]
    + [{"name": "deleted", "command": "echo one", "delete_stdio_on_success": True}],
}


def test_output_goes_where_jobs_say_as_locally(client_torc: ClientTorc) -> None:
    """One file keeps the order of both streams; what is not kept leaves no file here."""
    client_torc.write("w.yaml", STREAMS)
    client_torc("run", "w.yaml")
    client_torc("run", "w.yaml", *by_ssh("h2"))

    def logs(workflow_id: int) -> dict[str, Any]:
        rows = client_torc.json("reports", "results", workflow_id)["results"]
        paths = {row["job_name"]: (row["job_stdout"], row["job_stderr"]) for row in rows}
        return {
            name: [path and (client_torc.folder / path).read_text() for path in pair] for name, pair in paths.items()
        }

    remote = logs(2)
    assert remote == logs(1)
    assert (remote["combined"], remote["none"]) == (["one\ntwo\nthree\n"] * 2, [None, None])
    assert len(list((client_torc.folder / "output" / "job_stdio").glob("*_wf2_*"))) == 5


def test_output_is_where_it_always_is(client_torc: ClientTorc) -> None:
    """The logs have the names that the results say, with all bytes, in the output folder of the runner."""
    noise = "head -c 300000 /dev/zero; printf '\\377\\n' >&2"
    client_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": noise}]})
    client_torc("run", "w.yaml", *by_ssh("h2"))
    (logs,) = client_torc.json("reports", "results", 1)["results"]
    assert (client_torc.folder / logs["job_stdout"]).read_bytes() == bytes(300_000)
    assert (client_torc.folder / logs["job_stderr"]).read_bytes() == b"\xff\n"


FILES: dict[str, Any] = {
    "name": "files",
    "files": [
        {"name": "in", "path": "data/in.bin"},
        {"name": "tree", "path": "data/tree"},
        {"name": "upper", "path": "made/upper.bin"},
        {"name": "folder", "path": "made/folder"},
        {"name": "last", "path": "made/last.txt"},
    ],
    "jobs": [
        {
            "name": "copy",
            "command": "mkdir -p made && cp data/in.bin made/upper.bin && hostname > undeclared",
            "input_files": ["in"],
            "output_files": ["upper"],
        },
        {
            "name": "spread",
            "command": "mkdir -p made/folder/deep && cp data/tree/a made/folder/deep/b && sha256sum < data/tree/c/d",
            "input_files": ["tree"],
            "output_files": ["folder"],
        },
        {
            "name": "join",
            "command": "cat made/upper.bin made/folder/deep/b | sha256sum > made/last.txt",
            "input_files": ["upper", "folder"],
            "output_files": ["last"],
        },
    ],
}


@pytest.mark.parametrize("names", ["h1,h2", "h3", "h4"])
def test_files_travel(client_torc: ClientTorc, names: str) -> None:
    """What the spec declares comes to the host and home again, with folders and bits; nothing else does."""
    data = bytes(range(256)) * 4096 * 3
    (client_torc.folder / "data" / "tree" / "c").mkdir(parents=True)
    (client_torc.folder / "data" / "in.bin").write_bytes(data)
    (client_torc.folder / "data" / "tree" / "a").write_bytes(b"a")
    (client_torc.folder / "data" / "tree" / "c" / "d").write_bytes(b"d")
    client_torc.write("w.yaml", FILES)
    client_torc("run", "w.yaml", *by_ssh(names))
    made = client_torc.folder / "made"
    assert (made / "upper.bin").read_bytes() == data
    assert (made / "folder" / "deep" / "b").read_bytes() == b"a"
    assert (made / "last.txt").read_text().split()[0] == hashlib.sha256(data + b"a").hexdigest()
    assert not (client_torc.folder / "undeclared").exists()
    assert sorted(path.name for path in made.iterdir()) == ["folder", "last.txt", "upper.bin"]


def test_links_that_lead_out_of_a_folder_do_not_come_home(client_torc: ClientTorc) -> None:
    """Each of two links stays below the folder by its text; one after the other they lead out of it."""
    chain = "mkdir -p out/sub/a/b && ln -s ../../.. out/sub/a/b/x && ln -s sub/a/b/x/.. out/up"
    spec = {
        "name": "w",
        "files": [{"name": "out", "path": "out"}],
        "jobs": [{"name": "links", "command": chain, "output_files": ["out"]}],
    }
    client_torc.write("w.yaml", spec)
    client_torc("run", "w.yaml", *by_ssh("h1"), code=1)
    (job,) = ended_jobs(client_torc).values()
    assert job.status == "failed"
    assert "'up', which is not below" in job.reason
    assert not (client_torc.folder / "out" / "up").is_symlink()


def test_a_job_without_its_output_is_not_completed(client_torc: ClientTorc) -> None:
    """The job says success and wrote nothing: the result names the file; a job that needs it does not run."""
    spec = {
        "name": "w",
        "files": [{"name": "out", "path": "made/out"}],
        "jobs": [
            {"name": "liar", "command": "true", "output_files": ["out"]},
            {"name": "next", "command": "cat made/out", "input_files": ["out"]},
        ],
    }
    client_torc.write("w.yaml", spec)
    client_torc("run", "w.yaml", *by_ssh("h1"), code=1)
    jobs = ended_jobs(client_torc)
    assert jobs["liar"].status == "failed"
    assert "made/out" in jobs["liar"].reason
    assert jobs["next"].status == "canceled"


def test_a_shared_folder_needs_no_transfer(client_torc: ClientTorc) -> None:
    """With ``--shared-dir`` a job reads and writes where the runner's user works."""
    folder = Path(tempfile.mkdtemp(dir=client_torc.hosts.shared))
    (folder / "output" / "job_stdio").mkdir(parents=True)
    for each in (folder, folder / "output" / "job_stdio"):
        each.chmod(0o777)  # the user on the hosts is another one than the runner's
    torc = ClientTorc(client_torc.hosts, folder, client_torc.env["TORC_API_URL"])
    torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": "pwd; test -r w.yaml && hostname > made"}]})
    torc("run", "w.yaml", *by_ssh("h2", "--shared-dir"))
    assert (folder / "made").read_text() == "h2\n"
    (log,) = (folder / "output" / "job_stdio").glob("*.o")
    assert log.read_text() == f"{folder}\n"


def test_each_host_has_one_connection_and_one_session(client_torc: ClientTorc) -> None:
    """Also with many jobs, and also the jump host: the host behind it is reached over the same connection."""
    hosts = client_torc.hosts
    before = {name: hosts.count(name) for name in ALL.split(",")}
    spec = {"name": "w", "jobs": [{"name": "j{i}", "command": "sleep 0.1", "parameters": {"i": "1:80"}}]}
    client_torc.write("w.yaml", spec)
    client_torc("run", "w.yaml", *by_ssh(ALL, "--num-cpus", 4))
    after = {name: hosts.count(name) for name in before}
    opened = {name: after[name].accepted - before[name].accepted for name in before}
    sessions = {name: after[name].sessions - before[name].sessions for name in before}
    assert opened == dict.fromkeys(before, 1)
    assert sessions == dict.fromkeys(before, 1)
    assert {after[name].open_now for name in before} == {0}
    assert {job.host for job in ended_jobs(client_torc).values()} == {*before}


def test_hosts_of_different_sizes(client_torc: ClientTorc) -> None:
    """Each is filled by its own size; what fits on none says per host what is lacking."""
    spec = {
        "name": "sizes",
        "resource_requirements": [
            {"name": "wide", "num_cpus": 6, "memory": "1g"},
            {"name": "large", "num_cpus": 1, "memory": "12g"},
            {"name": "gpu", "num_cpus": 1, "num_gpus": 1, "memory": "1g"},
        ],
        "jobs": [
            {"name": "wide", "command": "true", "resource_requirements": "wide"},
            {"name": "large", "command": "true", "resource_requirements": "large"},
            {"name": "gpu", "command": 'echo "$CUDA_VISIBLE_DEVICES"', "resource_requirements": "gpu"},
        ],
    }
    client_torc.write("w.yaml", spec)
    sizes = "h1: cpus=6 memory=4g; h2: cpus=2 memory=16g; h4: cpus=1 memory=2g gpus=1"
    client_torc("run", "w.yaml", *by_ssh("h1,h2,h4", "--host-sizes", sizes))
    assert {name: job.host for name, job in ended_jobs(client_torc).items()} == {
        "wide": "h1",
        "large": "h2",
        "gpu": "h4",
    }


def test_what_fits_on_no_host_is_explained(client_torc: ClientTorc) -> None:
    """While the hosts work, ``torc explain`` says of each what the job lacks there."""
    spec = {
        "name": "huge",
        "resource_requirements": [{"name": "huge", "num_cpus": 8, "memory": "32g"}],
        "jobs": [
            {"name": "huge", "command": "true", "resource_requirements": "huge"},
            {"name": "small", "command": f"{MARK}; until test -e ~/go; do sleep 0.1; done"},
        ],
    }
    client_torc.write("w.yaml", spec)
    sizes = "h1: cpus=16 memory=4g; h2: cpus=2 memory=64g"
    process = client_torc.start("run", "w.yaml", *by_ssh("h1,h2", "--host-sizes", sizes))
    eventually(lambda: marks(client_torc.hosts, "h1", "h2")["small"], "the small job begins")
    (group,) = (each for each in client_torc.json("explain", 1)["groups"] if each["status"] == "ready")
    for host in ("h1", "h2"):
        (home_of(client_torc.hosts, host) / "go").touch()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1, stdout + stderr
    lacking = {each["hostname"]: " ".join(each["lacking"]) for each in group["runners"]}
    assert {*lacking} == {"h1", "h2"}
    assert "memory" in lacking["h1"]
    assert "CPU" in lacking["h2"]


def test_nothing_is_left_on_the_hosts(client_torc: ClientTorc) -> None:
    """No process and no journal of the helper stays after a run; what jobs of other runs left behind does not count."""
    spec = {"name": "w", "jobs": [{"name": "a", "command": "true"}]}
    client_torc.write("w.yaml", spec)
    client_torc("run", "w.yaml", *by_ssh("h2"))
    said = client_torc.hosts.exec("h2", "sh", "-c", "ps -u worker -o args= | grep -v '^ps' || true")
    assert "python" not in said
    state = home_of(client_torc.hosts, "h2") / ".local" / "state" / "torc" / "h2"
    kept = [path.name for path in state.iterdir()]
    assert [name for name in kept if not name.startswith("lib-")] == []  # the helper's modules, for the next run


def test_the_kernel_ends_what_takes_too_much_memory(own_torc: ClientTorc) -> None:
    """On a host whose user has a control group, as on this machine: the ending of both is the same."""
    own_torc.hosts.fault("delegate", "h2")
    spec = {
        "name": "hungry",
        "resource_requirements": [{"name": "small", "num_cpus": 1, "memory": "60m"}],
        "jobs": [
            {
                "name": "a",
                "command": "exec python3 -c 'x = bytearray(120 << 20)'",
                "resource_requirements": "small",
            }
        ],
    }
    own_torc.write("w.yaml", spec)
    own_torc.env["TORC_EXECUTOR__LOCAL__MEMORY_CGROUP"] = "require"
    own_torc("run", "w.yaml", "--enforce-limits", code=1)
    own_torc("run", "w.yaml", "--enforce-limits", *by_ssh("h2", "--memory-cgroup", "require"), code=1)
    local, remote = ended_jobs(own_torc, 1)["a"], ended_jobs(own_torc, 2)["a"]
    assert (remote.exit_class, remote.code) == ("oom", 137)
    assert essence(remote) == essence(local)
    assert remote.result["observation"]["oom_kills"] == local.result["observation"]["oom_kills"] == 1
