"""``torc remote collect-logs|delete-logs``: logs come from machines as they lie, and are deleted when they are here."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from ssh_hosts import CLIENT, USER, ClientTorc, SshHosts
from waiting import eventually

HOME = f"/home/{USER}"
SPEC = {
    "name": "measured",
    "resource_monitor": {"enabled": True, "granularity": "time_series", "sample_interval_seconds": 1},
    "jobs": [{"name": f"job_{i}", "command": "hostname; sleep 4"} for i in range(2)],
}
FOLDER = f"{HOME}/torc_output"


@pytest.fixture
def torc(own_hosts: SshHosts, work: Path, tmp_path: Path) -> Iterator[ClientTorc]:
    """The program on the client, after a workflow with id 1 has run on h1 and h2."""
    own_hosts.install_torc("h1", "h2")
    with own_hosts.server(tmp_path, address=CLIENT) as url:
        torc = ClientTorc(own_hosts, work, url)
        torc.write("spec.json", SPEC)
        torc("workflows", "create", "spec.json")
        torc("remote", "add-workers", 1, "h1", "h2")
        torc("remote", "run", 1, "--max-parallel-jobs", 1)
        eventually(lambda: torc("remote", "status", 1).count("exit code 0") == 2, "the runners do not end")
        yield torc


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_logs_and_resources_come_as_they_lie(torc: ClientTorc) -> None:
    """``torc plot-resources`` reads the databases; what is here is not fetched again."""
    said = torc("remote", "collect-logs", 1, "-l", "logs")
    assert said.count("[COLLECTED]") == 2
    here = files(torc.folder / "logs" / "h1")
    assert {"torc_worker_1.log", "job_runner_h1_wf1_r1.log"} <= here
    assert len([name for name in here if re.fullmatch(r"job_stdio/job_wf1_j\d_r1_a1\.[oe]", name)]) == 2
    database = torc.folder / "logs/h1/resource_utilization/resource_metrics_h1_1_1.db"
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM job_resource_samples").fetchone()[0] > 0
    assert "resource_plot_job_" in torc("plot-resources", *(torc.folder / "logs").glob("*/resource_utilization/*.db"))
    again = torc.json("remote", "collect-logs", 1, "-l", "logs")
    assert [each["fetched_files"] for each in again["workers"]] == [0, 0]


def test_only_what_was_collected_is_deleted(torc: ClientTorc) -> None:
    """A file that was changed after its collection stays; links and files of other workflows stay too."""
    hosts = torc.hosts
    torc("remote", "collect-logs", 1)
    log = torc.folder / "remote_logs/h1/torc_worker_1.log"
    hosts.exec("h1", "sh", "-c", f"cd {FOLDER}; echo x >torc_worker_8.log; ln -s /etc/passwd job_stdio/link; touch new")
    log.write_bytes(b"X" * log.stat().st_size)  # the copy here is no longer the file
    hosts.exec("h1", "touch", "-d", f"@{log.stat().st_mtime_ns / 1e9:.9f}", f"{FOLDER}/torc_worker_1.log")
    said = torc("remote", "collect-logs", 1, "--delete", code=1)
    assert "[COLLECTED] h2: " in said
    assert "[INCOMPLETE] h1: " in said
    assert "job_stdio/link: left out" in said
    left = hosts.exec("h1", "find", FOLDER, "-mindepth", "1").split()
    assert f"{FOLDER}/job_stdio/link" in left
    assert f"{FOLDER}/torc_worker_8.log" in left
    assert f"{FOLDER}/new" not in left
    assert hosts.exec("h2", "ls", HOME).split() == []
    assert torc("remote", "status", 1).count("no runner was started") >= 1


def test_a_collection_that_is_cut_goes_on(torc: ClientTorc) -> None:
    """The connection is ended in the middle of a file; the command connects again and goes on where it was."""
    hosts = torc.hosts
    size = 300 << 20
    hosts.exec("h1", "sh", "-c", f"head -c {size} /dev/urandom >{FOLDER}/large; chown worker: {FOLDER}/large")
    before = hosts.count("h1").accepted
    collecting = torc.start("remote", "collect-logs", 1)
    target = torc.folder / "remote_logs" / "h1"

    def partial_bytes() -> int:
        with suppress(FileNotFoundError):  # a file that is whole has got its name meanwhile
            return sum(path.stat().st_size for path in target.glob(".torc-part-*"))
        return 0

    eventually(lambda: partial_bytes() > size // 10, "nothing comes")
    hosts.fault("hangup", "h1")
    out, error = collecting.communicate(timeout=240)
    assert collecting.returncode == 0, out + error
    assert hosts.count("h1").accepted - before == 2
    with (target / "large").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    assert hosts.exec("h1", "sha256sum", f"{FOLDER}/large").split()[0] == digest
    assert not list(target.rglob(".torc-part-*"))


def test_a_folder_that_is_not_only_torcs_stays(torc: ClientTorc) -> None:
    hosts = torc.hosts
    hosts.exec("h1", "touch", f"{FOLDER}/thesis.tex")
    said = torc("remote", "delete-logs", 1, "--no-prompts", code=1)
    assert (
        "[FAILED] h1: torc_output stays, because it is not only an output directory of torc: it contains thesis.tex"
        in said
    )
    assert "[DELETED] h2: torc_output" in said
    assert "torc_worker_1.log" in hosts.exec("h1", "ls", FOLDER)
    assert hosts.exec("h2", "ls", HOME).split() == []
    for wrong in ("/", "~", "..", f"{HOME}/../.."):
        assert "--remote-output-dir" in torc("remote", "delete-logs", 1, "--remote-output-dir", wrong, code=2)
    assert "[FAILED] h2: " in torc("remote", "delete-logs", 1, "--remote-output-dir", HOME, code=1)


def test_logs_of_a_runner_that_works_are_collected_and_stay(torc: ClientTorc) -> None:
    torc.write("long.json", {"name": "long", "jobs": [{"name": "long", "command": "echo begun; exec sleep 1000"}]})
    torc("workflows", "create", "long.json")
    torc("remote", "add-workers", 2, "h1")
    torc("remote", "run", 2)
    eventually(lambda: "1 job(s) in hand" in torc("remote", "status", 2), "the job does not begin")
    said = torc("remote", "collect-logs", 2, "--delete", code=1)
    assert "a runner works there, so nothing was deleted" in said
    assert (torc.folder / "remote_logs/h1/job_stdio/job_wf2_j3_r1_a1.o").read_text() == "begun\n"
    assert "a runner of workflow 2 works in it" in torc("remote", "delete-logs", 2, code=1)
    torc("remote", "stop", 2, "--force")


def test_a_target_that_is_no_folder_is_an_error(torc: ClientTorc) -> None:
    (torc.folder / "remote_logs").write_text("a file, not a folder")
    assert torc("remote", "collect-logs", 1, code=1).count("[FAILED]") == 2
