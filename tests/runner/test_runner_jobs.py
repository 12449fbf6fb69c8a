"""What a runner does with jobs, seen from the server's records."""

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from runner_bench import Bench, counted, file, handler, job, most_at_once, requirements
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, UnknownNameError, UserError
from torc_framework.models.records import ComputeNodeRecord, FileRecord, ResultRecord
from torc_framework.runner import Progress, RunOutcome
from torc_framework.runner.attempts.workload import EndRate


def test_every_end_is_stored_as_it_was(bench: Bench) -> None:
    """Code and signal apart, the class, the number that renders both, times and usage."""
    results = bench.run_jobs(
        job("fine", "exit 0"),
        job("bad", "exit 137"),
        job("killed", "kill -9 $$"),
        job("lost", "no_such_program"),
    )
    seen = {name: (r.status, r.exit_code, r.signal, r.return_code, r.exit_class) for name, r in results.items()}
    assert seen == {
        "fine": ("completed", 0, None, 0, "success"),
        "bad": ("failed", 137, None, 137, "user_error"),
        "killed": ("failed", None, 9, 137, "signaled"),
        "lost": ("failed", 127, None, 127, "user_error"),
    }
    assert results["lost"].reason == "exit code 127: the shell did not find the command"
    assert all(r.cpu_time_s is not None for r in results.values())
    assert results["fine"].observation["executor"] == "local"


def test_outcome_says_how_it_went(bench: Bench) -> None:
    """Counts by status, complete, attempts and failures."""
    outcome = bench.run(bench.create(job("a", "true"), job("b", "false")))
    assert outcome.is_complete
    assert outcome.counts == {"completed": 1, "failed": 1}
    assert (outcome.attempts, outcome.failed_attempts) == (2, 1)
    assert not any((outcome.interrupted, outcome.is_canceled, outcome.unfit, outcome.out_of_time))


def test_environment_of_a_job(bench: Bench) -> None:
    """All variables of the manual, and the logs at their documented paths."""
    workflow_id = bench.create(job("späte Arbeit", "env | grep ^TORC_ | sort; echo problem >&2"))
    bench.run(workflow_id)
    id_ = bench.jobs(workflow_id)["späte Arbeit"].id
    assert bench.log(workflow_id, "späte Arbeit").splitlines() == [
        f"TORC_API_URL={bench.client.url}",
        "TORC_ATTEMPT_ID=1",
        f"TORC_JOB_ID={id_}",
        "TORC_JOB_NAME=späte Arbeit",
        f"TORC_OUTPUT_DIR={bench.folder}/output",
        "TORC_RUN_ID=1",
        f"TORC_WORKFLOW_ID={workflow_id}",
    ]
    assert bench.log(workflow_id, "späte Arbeit", ".e") == "problem\n"


def test_invocation_script_gets_the_command(bench: Bench) -> None:
    """It stands in front of the command, in the working directory."""
    script = bench.folder / "wrap.sh"
    script.write_text('#!/bin/sh\necho "in $PWD: $@"\n')
    script.chmod(0o755)
    workflow_id = bench.create(job("a", "run 1 2", invocation_script="./wrap.sh"))
    bench.run(workflow_id)
    assert bench.log(workflow_id, "a") == f"in {bench.folder}: run 1 2\n"


def test_dependents_run_in_order(bench: Bench) -> None:
    """A diamond: the end after both sides, these after the beginning."""
    log = bench.folder / "log"
    workflow_id = bench.create(
        *[job(name, f"echo {name} >> {log}") for name in "abcd"], dependencies=[(1, 0), (2, 0), (3, 1), (3, 2)]
    )
    assert bench.run(workflow_id).is_complete
    lines = log.read_text().split()
    assert lines[0] == "a"
    assert lines[3] == "d"
    assert sorted(lines) == list("abcd")


def test_a_failure_cancels_dependents(bench: Bench) -> None:
    """Only those that ask for it."""
    workflow_id = bench.create(
        job("a", "exit 3"),
        job("b", "true"),
        job("c", "true", cancel_on_blocking_job_failure=False),
        dependencies=[(1, 0), (2, 0)],
    )
    bench.run(workflow_id)
    assert bench.statuses(workflow_id) == {"a": "failed", "b": "canceled", "c": "completed"}


def test_missing_output_is_a_failure(bench: Bench) -> None:
    """After a clean exit; the reason names the file. Those that exist get their modification time."""
    made, missing = bench.folder / "made", bench.folder / "missing"
    workflow_id = bench.create(job("a", f"touch {made}", output_files=[0, 1]), files=[file("made"), file(missing)])
    bench.run(workflow_id)
    result = bench.results(workflow_id)["a"]
    assert (result.status, result.return_code, result.exit_class) == ("failed", 1, "output_missing")
    assert str(missing) in (result.reason or "")
    times = {each.name: each.st_mtime for each in bench.client.find(FileRecord, workflow_id=workflow_id)}
    assert times == {"made": made.stat().st_mtime, "missing": None}


def test_queue_depth_ignores_resources(bench: Bench) -> None:
    """Three run at once on one CPU, independent of their requests, and never more."""
    log = bench.folder / "log"
    jobs = [job(f"j{i}", counted(log), resource_requirements=i % 2) for i in range(12)]
    workflow_id = bench.create(*jobs, resource_requirements=[requirements("a", num_cpus=64), requirements("b")])
    outcome = bench.run(workflow_id, max_parallel_jobs=3, num_cpus=1)
    assert outcome.counts == {"completed": 12}
    assert most_at_once(log) == 3


@pytest.mark.parametrize(
    ("asked", "offered", "most"),
    [
        ({"num_cpus": 2}, {"num_cpus": 5}, 2),
        ({"memory": "2g"}, {"num_cpus": 9, "memory_gb": 7}, 3),
        ({"num_gpus": 2}, {"num_cpus": 9, "num_gpus": 4}, 2),
        ({}, {"num_cpus": 4}, 4),
    ],
)
def test_resources_are_never_exceeded(bench: Bench, asked: dict[str, Any], offered: dict[str, Any], most: int) -> None:
    """As many run at once as fit, and never more."""
    log = bench.folder / "log"
    jobs = [job(f"j{i}", counted(log), resource_requirements=0) for i in range(10)]
    workflow_id = bench.create(*jobs, resource_requirements=[requirements(**asked)])
    assert bench.run(workflow_id, **offered).is_complete
    assert most_at_once(log) == most


def test_jobs_of_different_shapes_share_a_runner(bench: Bench) -> None:
    """Large and small ones together; CPUs in use never exceed what is offered."""
    log = bench.folder / "log"
    shapes = [requirements(f"r{n}", num_cpus=n) for n in (1, 2, 3)]
    jobs = [
        job(
            f"j{i}",
            f"echo +{i % 3 + 1} >> {log}; sleep 0.0{i % 4}; echo -{i % 3 + 1} >> {log}",
            resource_requirements=i % 3,
        )
        for i in range(60)
    ]
    workflow_id = bench.create(*jobs, resource_requirements=shapes)
    assert bench.run(workflow_id).counts == {"completed": 60}
    in_use = most = 0
    for change in log.read_text().split():
        in_use += int(change)
        most = max(most, in_use)
    assert in_use == 0
    assert most <= 4


def test_gpus_are_assigned(bench: Bench) -> None:
    """Jobs that run together see different devices; jobs that ask for none see what the runner sees."""
    log = bench.folder / "log"
    command = f'echo "$CUDA_VISIBLE_DEVICES" >> {log}; sleep 0.1'
    jobs = [job(f"j{i}", command, resource_requirements=0) for i in range(8)]
    workflow_id = bench.create(*jobs, resource_requirements=[requirements(num_gpus=1)])
    assert bench.run(workflow_id, num_gpus=2).is_complete
    seen = log.read_text().split()
    assert (len(seen), set(seen)) == (8, {"0", "1"})


def test_what_never_fits_is_said_at_once(bench: Bench) -> None:
    """The runner ends and names the amounts."""
    workflow_id = bench.create(
        job("small", "true"),
        job("big", "true", resource_requirements=0),
        resource_requirements=[requirements(num_cpus=64, memory="900t")],
    )
    outcome = bench.run(workflow_id, wait_for_new_jobs_s=1000)
    assert outcome.counts == {"completed": 1, "ready": 1}
    assert outcome.unfit is not None
    assert re.search(r"'big' asks for 64 CPUs of 4, 900 TiB memory of \d+(\.\d)? [MGT]iB", outcome.unfit)


def test_an_idle_runner_leaves(bench: Bench) -> None:
    """When nothing is ready for as long as it waits."""
    workflow_id = bench.create(job("a", "false"), job("b", "true"), dependencies=[(1, 0)], workflow=PENDING_FAILED)
    outcome = bench.run(workflow_id)
    assert outcome.counts == {"pending_failed": 1, "blocked": 1}
    assert not outcome.is_complete


PENDING_FAILED = {"use_pending_failed": True}


def test_unmatched_failures_may_wait_for_a_verdict(bench: Bench) -> None:
    """Only with the workflow's flag, and not when a rule matches but its attempts are used up."""
    rules = handler('[{"exit_codes": [2], "max_retries": 1}]')
    workflow_id = bench.create(
        job("unmatched", "exit 1", failure_handler=0),
        job("used_up", "exit 2", failure_handler=0),
        failure_handlers=[rules],
        workflow=PENDING_FAILED,
    )
    bench.run(workflow_id)
    assert bench.statuses(workflow_id) == {"unmatched": "pending_failed", "used_up": "failed"}


def test_failure_rules_grant_attempts(bench: Bench) -> None:
    """Each attempt has its result; the number of attempts counts all rules together."""
    rules = json.dumps([{"match_all_exit_codes": True, "max_retries": 2}, {"exit_codes": [10, 11], "max_retries": 3}])
    workflow_id = bench.create(
        job("ten", "exit 10", failure_handler=0),
        job("five", "exit 5", failure_handler=0),
        job("second", "[ $TORC_ATTEMPT_ID = 2 ]", failure_handler=0),
        job("killed", "kill -9 $$", failure_handler=0),
        failure_handlers=[handler(rules)],
    )
    outcome = bench.run(workflow_id)
    assert outcome.counts == {"failed": 3, "completed": 1}
    results = bench.client.find(ResultRecord, workflow_id=workflow_id, all_runs=True)
    names = {each.id: name for name, each in bench.jobs(workflow_id).items()}
    attempts = sorted((names[each.job_id], each.attempt_id, each.status) for each in results)
    assert attempts == [
        ("five", 1, "failed"),
        ("five", 2, "failed"),
        ("killed", 1, "failed"),
        ("killed", 2, "failed"),
        ("second", 1, "failed"),
        ("second", 2, "completed"),
        ("ten", 1, "failed"),
        ("ten", 2, "failed"),
        ("ten", 3, "failed"),
    ]


@pytest.mark.parametrize("script_code", [0, 7])
def test_recovery_script_runs_between_attempts(bench: Bench, script_code: int) -> None:
    """With the failed attempt's environment; its own failure changes nothing."""
    script = f"env | grep -E '^TORC_(ATTEMPT|RETURN)' | sort > recovered; echo said; exit {script_code}"
    rules = json.dumps([{"exit_codes": [4], "recovery_script": script}])
    workflow_id = bench.create(
        job("a", "[ -e recovered ] || exit 4; cat recovered", failure_handler=0), failure_handlers=[handler(rules)]
    )
    assert bench.run(workflow_id).counts == {"completed": 1}
    assert bench.log(workflow_id, "a", attempt=2) == "TORC_ATTEMPT_ID=1\nTORC_RETURN_CODE=4\n"
    assert bench.log(workflow_id, "a", "_recovery.log") == "said\n"


def test_no_script_without_a_retry(bench: Bench) -> None:
    """A rule whose attempts are used up does not run its script."""
    rules = json.dumps([{"exit_codes": [4], "recovery_script": "touch ran", "max_retries": 1}])
    workflow_id = bench.create(job("a", "exit 4", failure_handler=0), failure_handlers=[handler(rules)])
    bench.run(workflow_id)
    assert not (bench.folder / "ran").exists()


def test_run_time_limit(bench: Bench) -> None:
    """SIGKILL at once, or SIGTERM first; the class is timeout with any exit code; children end as well."""
    trap = "trap 'exit {}' TERM; while :; do sleep 0.02; done"
    results = bench.run_jobs(
        job("hard", "sleep 100", resource_requirements=0),
        job("soft", trap.format(7), resource_requirements=0, supports_termination=True),
        job("clean", trap.format(0), resource_requirements=0, supports_termination=True),
        job("deaf", "trap '' TERM; while :; do sleep 0.02; done", resource_requirements=0, supports_termination=True),
        resource_requirements=[requirements(runtime="PT1S")],
    )
    seen = {name: (r.status, r.exit_class, r.return_code, r.exit_code, r.signal) for name, r in results.items()}
    assert seen == {
        "hard": ("terminated", "timeout", 152, None, 9),
        "soft": ("terminated", "timeout", 7, 7, None),
        "clean": ("terminated", "timeout", 152, 0, None),
        "deaf": ("terminated", "timeout", 152, None, 9),
    }


def test_default_requirements_are_no_limit(bench: Bench) -> None:
    """The default run time of a minute is not enforced."""
    result = bench.run_jobs(job("a", "sleep 0.1"))["a"]
    assert "runtime_limit_s" not in result.observation


def test_walltime_ends_the_runner(bench: Bench) -> None:
    """Running jobs are terminated, others stay ready; the runner reports why."""
    workflow_id = bench.create(
        job("long", "sleep 100"),
        job("polite", "trap 'exit 0' TERM; while :; do sleep 0.02; done", supports_termination=True),
        *[job(f"later{i}", "sleep 100") for i in range(4)],
    )
    outcome = bench.run(workflow_id, time_limit_s=2, max_parallel_jobs=2)
    assert outcome.out_of_time
    assert (outcome.counts, outcome.interrupted_jobs) == ({"terminated": 2, "ready": 4}, 2)
    results = bench.results(workflow_id)
    assert (results["long"].exit_class, results["long"].return_code) == ("interrupted", 152)
    assert results["long"].reason == "its runner had to end: its time limit was reached"
    assert (results["polite"].exit_class, results["polite"].return_code) == ("interrupted", 0)


def test_jobs_longer_than_the_walltime_left_do_not_fit(bench: Bench) -> None:
    """They are not begun, and the runner reports that."""
    workflow_id = bench.create(
        job("a", "true", resource_requirements=0), resource_requirements=[requirements(runtime="PT2H")]
    )
    outcome = bench.run(workflow_id, time_limit_s=3600, wait_for_new_jobs_s=1000)
    assert outcome.counts == {"ready": 1}
    assert re.search(r"run time 2 h of 5\d min \d\d s left", outcome.unfit or "")


def test_unknown_workflow(bench: Bench) -> None:
    """The server's reason is passed on."""
    with pytest.raises(ApiError) as error:
        bench.run(10**6)
    assert error.value.status == 404


def test_unknown_executor_is_refused(bench: Bench) -> None:
    """Before anything is claimed, with the known ones."""
    workflow_id = bench.create(job("a", "true"))
    with pytest.raises(UnknownNameError, match="did you mean 'local'"):
        bench.run(workflow_id, executor="locale")
    assert bench.statuses(workflow_id) == {"a": "ready"}
    assert not bench.client.find(ComputeNodeRecord, workflow_id=workflow_id)


def test_unknown_executor_option_is_refused(bench: Bench) -> None:
    """The message names the nearest."""
    with pytest.raises(UserError, match="did you mean 'shell'"):
        bench.run(bench.create(job("a", "true")), executor_options={"local": {"shel": "/bin/sh"}})


def test_a_jobs_executor_must_exist(bench: Bench) -> None:
    """A job of an executor that is not installed fails with that reason; others run."""
    workflow_id = bench.create(job("a", "true", executor="moon"), job("b", "true", executor="local"))
    bench.run(workflow_id)
    assert bench.statuses(workflow_id) == {"a": "failed", "b": "completed"}
    result = bench.results(workflow_id)["a"]
    assert result.exit_class == "launch_failure"
    assert "'moon'" in (result.reason or "")


def test_unusable_output_directory_is_refused(bench: Bench) -> None:
    """The message names the folder and the option."""
    (bench.folder / "file").touch()
    with pytest.raises(UserError, match="--output-dir"):
        bench.run(bench.create(job("a", "true")), output_dir=bench.folder / "file" / "output")


def test_record_of_the_runner(bench: Bench) -> None:
    """What it offers, and that it has ended; nothing but logs is left on disk."""
    workflow_id = bench.create(job("a", "true"))
    bench.run(workflow_id, num_cpus=3, memory_gb=2.5, num_gpus=1)
    (node,) = bench.client.find(ComputeNodeRecord, workflow_id=workflow_id)
    assert (node.num_cpus, node.memory_gb, node.num_gpus, node.is_active) == (3, 2.5, 1, False)
    assert node.pid == os.getpid()
    assert node.duration_seconds is not None
    names = {path.name for path in (bench.folder / "output").iterdir()}
    assert names == {"job_stdio", f"job_runner_{node.hostname}_wf{workflow_id}_r1.log"}


def test_progress_is_told(bench: Bench) -> None:
    """Counts by status and the number of running attempts."""
    heard: list[Progress] = []
    bench.run(bench.create(*[job(f"j{i}", "sleep 0.3") for i in range(8)]), progress=heard.append)
    assert heard
    assert all(sum(each.counts.values()) == 8 and each.running <= 4 for each in heard)


def test_progress_without_counts(bench: Bench) -> None:
    """A runner whose progress is not shown has no jobs counted, and tells the rest."""
    heard: list[Progress] = []
    jobs = [job(f"j{i}", "sleep 0.3") for i in range(8)]
    bench.run(bench.create(*jobs), progress=heard.append, counts_jobs=False)
    assert any(progress.running for progress in heard)
    assert not any(progress.counts for progress in heard)


def test_cancel_ends_everything(bench: Bench) -> None:
    """Running jobs are killed, also polite ones; their results say canceled."""
    workflow_id = bench.create(
        job("a", "touch up; trap '' TERM; sleep 100", supports_termination=True),
        *[job(f"j{i}", "sleep 100") for i in range(6)],
    )
    canceler = threading.Thread(target=cancel_when, args=(bench.client.url, workflow_id, bench.folder / "up"))
    canceler.start()
    outcome = bench.run(workflow_id)
    canceler.join()
    assert outcome.is_canceled
    results = bench.results(workflow_id)
    assert results["a"].status == "canceled"
    assert results["a"].exit_class == "canceled"
    assert "running" not in bench.statuses(workflow_id).values()


def cancel_when(url: str, workflow_id: int, path: Path) -> None:
    """Cancel a workflow once a file is there."""
    eventually(path.exists)
    TorcClient(url).cancel(workflow_id)


def test_runners_share_a_workflow(bench: Bench) -> None:
    """Three runners at once: every job runs once."""
    workflow_id = bench.create(*[job(f"j{i}", f"echo {i} >> {bench.folder}/log") for i in range(300)])
    outcomes: list[RunOutcome] = []
    settings = bench.settings(workflow_id, wait_for_new_jobs_s=30)

    def work(number: int) -> None:
        from torc_framework.runner import run

        own = evolve(settings, output_dir=bench.folder / f"output{number}")
        outcomes.append(run(own, bench.plugins))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, (bench.folder / "log").read_text().split())) == list(range(300))
    assert sum(each.attempts for each in outcomes) == 300
    assert all(each.is_complete for each in outcomes)


def test_work_that_comes_later_is_taken(bench: Bench) -> None:
    """A runner without work is woken when another makes some ready."""
    first = job("first", "sleep 0.6")
    later = [job(f"j{i}", "true") for i in range(3)]
    workflow_id = bench.create(first, *later, dependencies=[(i, 0) for i in range(1, 4)])
    outcome = bench.run(workflow_id, wait_for_new_jobs_s=0)
    assert outcome.counts == {"completed": 4}


def test_each_end_counts_for_the_pace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a queued job that ends before the runner has heard that it began."""
    numbers: list[int] = []
    ended = EndRate.ended

    def note(rate: EndRate, number: int, now: float) -> None:
        numbers.append(number)
        ended(rate, number, now)

    monkeypatch.setattr(EndRate, "ended", note)
    bench.run_jobs(*(job(f"short_{n}", "true") for n in range(60)))
    assert sum(numbers) == 60
