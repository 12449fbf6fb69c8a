"""A network that is cut, a runner that is killed and a host that is destroyed, all in one run of many jobs."""

import signal

import pytest
from run_results import all_results, ended_jobs
from ssh_hosts import ClientTorc
from ssh_runs import ALL, QUICK, by_ssh, marks
from waiting import eventually, let_pass

pytestmark = [pytest.mark.e2e, pytest.mark.crash, pytest.mark.slow]

JOBS = 400
CODES = 5


def test_every_job_ends_once_with_its_true_exit(own_torc: ClientTorc) -> None:
    hosts = own_torc.hosts
    command = f'echo "$TORC_JOB_NAME" >> ~/ran; sleep 0.5; exit $(( {{i}} % {CODES} ))'
    job = {"name": "j{i}", "command": command, "parameters": {"i": f"1:{JOBS}"}}
    own_torc.write("w.yaml", {"name": "chaos", "jobs": [job]})
    options = by_ssh(ALL, "--num-cpus", 4, "--memory-gb", 8, *QUICK, "--lost-after-s", 12)

    def begun(*names: str) -> int:
        return sum(marks(hosts, *names).values())

    first = own_torc.start("run", "w.yaml", *options)
    eventually(lambda: begun("h2") >= 8, "jobs begin on h2")
    hosts.fault("cut", "h2")
    eventually(lambda: begun(*ALL.split(",")) >= JOBS // 4, "jobs go on beside the cut")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = own_torc.start("run", "1", *options)
    eventually(lambda: begun("h1", "h3", "h4") >= JOBS // 3, "the second runner starts jobs")
    hosts.fault("kill", "h3")
    let_pass(1)
    hosts.fault("join", "h2")
    stdout, stderr = second.communicate(timeout=240)
    assert second.returncode == 1, stdout + stderr

    jobs = ended_jobs(own_torc)
    assert len(jobs) == JOBS
    assert {name: job.code for name, job in jobs.items()} == {f"j{i}": i % CODES for i in range(1, JOBS + 1)}
    results = all_results(own_torc)
    last = {each["job_id"] for each in results if each["exit_class"] != "node_failure"}
    assert len(last) == JOBS
    assert len([each for each in results if each["exit_class"] != "node_failure"]) == JOBS
    lost = {each["job_id"] for each in results if each["exit_class"] == "node_failure"}
    ran = marks(hosts, "h1", "h2", "h4")
    twice = {name for name, times in ran.items() if times > 1}
    assert twice == set(), f"ran twice on hosts that were not destroyed; lost: {lost}"
