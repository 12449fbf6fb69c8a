"""A run with several sites: one runner for each, in one process."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from plugin_files import HEAD, classifier
from programs import project_plugin
from runner_bench import Bench, job, requirements
from waiting import eventually, let_pass

from torc_framework.errors import LaunchError, UserError
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.plugins.manager import PluginManager
from torc_framework.plugins.watched_calls import SLOW_S
from torc_framework.runner import Progress, RunOutcome, SiteOutcome
from torc_framework.runner import run as run_workflow
from torc_framework.runner.sites import site_worker

PLUGIN = Path(__file__).parents[1] / "helpers" / "sites_executor.py"
TORC = Path(sys.executable).with_name("torc")


@pytest.fixture
def several(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench whose project brings the executor ``sites``; errors are tried again soon."""
    project_plugin(bench.folder, "sites", PLUGIN.read_text())
    monkeypatch.setattr(site_worker, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(site_worker, "CRASH_PAUSE_S", 0.05)
    return evolve(bench, plugins=PluginManager.load(bench.folder))


def sites_options(bench: Bench, sites: str) -> dict[str, Any]:
    """Return the settings of a run on these sites."""
    options = {"sites": {"sites": sites, "state": str(bench.folder)}}
    return {"executor": "sites", "executor_options": options, "num_cpus": None}


def run(bench: Bench, workflow_id: int, sites: str, **changes: Any) -> RunOutcome:
    """Run a workflow on these sites."""
    return bench.run(workflow_id, **sites_options(bench, sites), **changes)


def runners(bench: Bench, workflow_id: int) -> dict[str, ComputeNodeRecord]:
    """Return the records of the last runners by host."""
    return {each.hostname: each for each in bench.client.find(ComputeNodeRecord, workflow_id=workflow_id)}


def hosts(bench: Bench, workflow_id: int) -> dict[str, str]:
    """Return by job the host on which it ended."""
    names = {each.id: host for host, each in runners(bench, workflow_id).items()}
    return {name: names[result.compute_node_id] for name, result in bench.results(workflow_id).items()}


def begin(bench: Bench, workflow_id: int, sites: str, *options: str) -> "subprocess.Popen[bytes]":
    """Run a workflow on these sites as a user would."""
    command = [str(TORC), "--url", bench.client.url, "-f", "json", "run", str(workflow_id), "--executor", "sites"]
    return subprocess.Popen(
        [*command, "--sites", sites, "--state", str(bench.folder), *options],
        cwd=bench.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


# --- what each site gets --------------------------------------------------------------------------


def test_each_site_is_filled(several: Bench) -> None:
    """All jobs meet, since both sites together have room for all."""
    meet = "touch up.$TORC_JOB_NAME; until [ $(ls up.* | wc -l) = 5 ]; do sleep 0.02; done"
    jobs = [job(f"j{number}", meet, resource_requirements=0) for number in range(5)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    outcome = run(several, workflow_id, "a:2 b:3")
    assert outcome.counts == {"completed": 5}
    assert outcome.sites == [SiteOutcome("a", "host-a", 2), SiteOutcome("b", "host-b", 3)]
    records = runners(several, workflow_id).values()
    assert sorted((each.hostname, each.num_cpus, each.is_active) for each in records) == [
        ("host-a", 2, False),
        ("host-b", 3, False),
    ]


def test_gpus_belong_to_their_site(several: Bench) -> None:
    """Each job is given the names of GPUs of the site on which it runs."""
    meet = "echo $CUDA_VISIBLE_DEVICES; touch up.$TORC_JOB_NAME; until [ $(ls up.* | wc -l) = 3 ]; do sleep 0.02; done"
    jobs = [job(f"j{number}", meet, resource_requirements=0) for number in range(3)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements(num_gpus=1)])
    run(several, workflow_id, "a:4:1 b:4:2")
    assert {several.log(workflow_id, f"j{number}").strip() for number in range(3)} == {"a0", "b0", "b1"}
    assert all(several.log(workflow_id, name)[0] == host[-1] for name, host in hosts(several, workflow_id).items())


def test_one_named_site_is_an_ordinary_run(several: Bench) -> None:
    """Its runner works in the thread of the caller."""
    workflow_id = several.create(job("a", "true"))
    threads: set[threading.Thread] = set()
    outcome = run(several, workflow_id, "a", progress=lambda _progress: threads.add(threading.current_thread()))
    assert outcome.sites == [SiteOutcome("a", "host-a", 1)]
    assert threads <= {threading.current_thread()}
    assert runners(several, workflow_id)["host-a"].scheduler["site"] == "a"


def test_every_runner_has_a_log_of_its_own(several: Bench) -> None:
    """The log of a site holds the events of its own runner."""
    workflow_id = several.create(*[job(f"j{number}", "sleep 0.1") for number in range(8)])
    run(several, workflow_id, "a:2 b:2")
    for host, node in runners(several, workflow_id).items():
        lines = (several.folder / "output" / f"job_runner_{host}_wf{workflow_id}_r1.log").read_text().splitlines()
        assert len([line for line in lines if "Job completed" in line]) == 4 or len(lines) > 2
        assert {word for line in lines for word in line.split() if word.startswith("compute_node_id")} == {
            f"compute_node_id={node.id}"
        }


def test_progress_and_failures_of_all_sites_come_together(several: Bench) -> None:
    """The numbers are those of the whole run."""
    meet = "touch up.$TORC_JOB_NAME; until [ $(ls up.* | wc -l) = 4 ]; do sleep 0.02; done; sleep 0.5; exit 3"
    workflow_id = several.create(
        *[job(f"j{n}", meet, resource_requirements=0) for n in range(4)], resource_requirements=[requirements()]
    )
    seen: list[Progress] = []
    failed: list[str] = []
    settings = several.settings(workflow_id, **sites_options(several, "a:2 b:2"))
    run_workflow(settings, several.plugins, seen.append, several.client, lambda notice: failed.append(notice.job_name))
    assert max(each.running for each in seen) == 4
    assert sorted(failed) == ["j0", "j1", "j2", "j3"]


# --- who stays ------------------------------------------------------------------------------------


def test_an_idle_site_stays_while_another_one_works(several: Bench) -> None:
    """What becomes ready later fits the idle site alone, which has waited for much longer than it may when idle."""
    workflow_id = several.create(
        job("first", "sleep 1.5", resource_requirements=0),
        job("second", "true", resource_requirements=1),
        dependencies=[(1, 0)],
        resource_requirements=[requirements(name="gpu", num_gpus=1), requirements(name="large", num_cpus=4)],
    )
    outcome = run(several, workflow_id, "a:1:1 b:4")
    assert outcome.counts == {"completed": 2}
    assert hosts(several, workflow_id) == {"first": "host-a", "second": "host-b"}


def test_what_fits_no_site_is_named_per_site(several: Bench) -> None:
    """All runners end soon, and the reason names every host."""
    workflow_id = several.create(
        job("small", "true"),
        job("large", "true", resource_requirements=0),
        resource_requirements=[requirements(num_cpus=9)],
    )
    outcome = run(several, workflow_id, "a:2 b:3", wait_for_new_jobs_s=60)
    assert outcome.counts == {"completed": 1, "ready": 1}
    assert outcome.unfit is not None
    assert "host-a: 1 ready job does not fit this runner" in outcome.unfit
    assert "host-b: 1 ready job does not fit this runner" in outcome.unfit


# --- sites that cannot begin ----------------------------------------------------------------------


def test_a_site_that_cannot_begin_is_tried_again_while_others_work(several: Bench) -> None:
    """A warning names it and the reason; it takes part when it can."""
    (several.folder / "b.down").write_text("no route to it")
    waits = "until [ -e go ]; do sleep 0.02; done"
    workflow_id = several.create(
        job("first", waits),
        job("second", "true", resource_requirements=0),
        dependencies=[(1, 0)],
        resource_requirements=[requirements(num_cpus=4)],
    )
    said: list[str] = []

    def warn(text: str) -> None:
        said.append(text)
        if "until" in text:
            (several.folder / "b.down").unlink()
        else:
            (several.folder / "go").touch()

    settings = several.settings(workflow_id, **sites_options(several, "a:1 b:4"))
    outcome = run_workflow(settings, several.plugins, client=several.client, on_warning=warn)
    assert said == ["b takes no part until it can begin: no route to it", "b takes part now"]
    assert outcome.counts == {"completed": 2}
    assert hosts(several, workflow_id)["second"] == "host-b"
    assert not outcome.troubles


def test_a_site_that_never_begins_is_told_at_the_end(several: Bench) -> None:
    """One whose error is permanent is tried once; the run succeeds without it."""
    (several.folder / "b.down").write_text("permanent: the key was refused")
    workflow_id = several.create(job("first", "sleep 0.5"))
    outcome = run(several, workflow_id, "a b")
    assert outcome.counts == {"completed": 1}
    assert outcome.sites[1] == SiteOutcome("b", "b", trouble="permanent: the key was refused")
    assert outcome.troubles == ["b: permanent: the key was refused"]
    (several.folder / "b.down").write_text("host b: permanent: the key was refused")
    assert run(several, several.create(job("first", "sleep 0.5")), "a b").troubles == outcome.troubles


def test_no_site_can_begin(several: Bench) -> None:
    """One error names all of them; no job is touched."""
    for site in "abc":
        (several.folder / f"{site}.down").write_text(f"{site} is off")
    workflow_id = several.create(job("first", "true"))
    with pytest.raises(LaunchError, match="no site can begin: a: a is off; b: b is off; c: c is off"):
        run(several, workflow_id, "a b c")
    assert several.statuses(workflow_id) == {"first": "ready"}
    assert not runners(several, workflow_id)


def test_wrong_options_are_refused_before_anything_begins(several: Bench) -> None:
    """The question for the sites checks the options."""
    workflow_id = several.create(job("first", "true"))
    with pytest.raises(UserError, match="no site is named"):
        run(several, workflow_id, "")


# --- sites that do not accept attempts ------------------------------------------------------------


def test_a_site_that_is_cut_off_gives_its_jobs_back_and_goes_on_later(several: Bench) -> None:
    """Others run what it had not begun; it keeps what runs, and takes jobs again when it is there again."""
    waits = "touch up.{0}; until [ -e go.{0} ]; do sleep 0.02; done"
    small, alone = 1, 0
    workflow_id = several.create(
        job("held", waits.format("held"), resource_requirements=alone),
        *[
            job(f"j{number}", "until [ -e go.small ]; do sleep 0.02; done", resource_requirements=small)
            for number in range(20)
        ],
        job("last", "true", resource_requirements=alone),
        dependencies=[(21, number) for number in range(1, 21)],
        resource_requirements=[requirements(name="alone", num_gpus=1), requirements(name="small")],
    )

    def show(progress: Progress) -> None:
        is_over = (several.folder / "go.small").exists()  # the counts of one site may be older than those of the other
        if (several.folder / "up.held").exists() and not is_over:
            (several.folder / "a.cut").touch()
        if progress.hindrance == "a was cut off":
            (several.folder / "go.small").touch()
        if progress.counts.get("completed") == 20:
            (several.folder / "a.cut").unlink(missing_ok=True)
            (several.folder / "go.held").touch()

    outcome = run(several, workflow_id, "a:1:1 b:2", progress=show)
    assert outcome.counts == {"completed": 22}
    ran_on = hosts(several, workflow_id)
    assert {name for name, host in ran_on.items() if host == "host-a"} == {"held", "last"}


def test_a_runner_that_accepts_nothing_stays_and_learns_of_cancelation(several: Bench) -> None:
    """It claims nothing, although it has been idle for longer than it may."""
    (several.folder / "a.cut").touch()
    workflow_id = several.create(job("first", "true"))
    outcomes: list[RunOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(run(several, workflow_id, "a")))
    thread.start()
    eventually(lambda: "a was cut off" in str([each.scheduler for each in runners(several, workflow_id).values()]))
    let_pass(0.5)
    assert several.statuses(workflow_id) == {"first": "ready"}
    assert thread.is_alive()
    several.client.cancel(workflow_id)
    thread.join(20)
    assert outcomes
    assert outcomes[0].is_canceled


# --- errors ---------------------------------------------------------------------------------------


def test_a_runner_that_crashes_is_replaced(several: Bench) -> None:
    """Its attempts go on, and each ends once, under the next runner of its site."""
    count = "echo $TORC_JOB_NAME >> ran; touch up.$TORC_JOB_NAME; until [ -e go ]; do sleep 0.02; done; exit 5"
    jobs = [job(f"j{number}", count, resource_requirements=0) for number in range(4)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    said: list[str] = []

    def warn(text: str) -> None:
        said.append(text)
        (several.folder / "go").touch()

    def crash() -> None:
        eventually(lambda: len(list(several.folder.glob("up.*"))) == 4)
        (several.folder / "a.crash").touch()

    thread = threading.Thread(target=crash)
    thread.start()
    settings = several.settings(workflow_id, **sites_options(several, "a:2 b:2"))
    outcome = run_workflow(settings, several.plugins, client=several.client, on_warning=warn)
    thread.join()
    assert outcome.counts == {"failed": 4}
    assert Counter((several.folder / "ran").read_text().split()) == dict.fromkeys(several.jobs(workflow_id), 1)
    assert all(result.return_code == 5 for result in several.results(workflow_id).values())
    assert len(said) == 1
    assert "the runner of a ended by an error and is replaced" in said[0]
    assert sum(each.attempts for each in outcome.sites) == 4
    assert not any(each.is_active for each in several.client.find(ComputeNodeRecord, workflow_id=workflow_id))


def test_a_runner_that_always_crashes_does_not_hang_the_run(several: Bench) -> None:
    """The other site does the work; the report names the error."""
    (several.folder / "a.crash").touch()
    workflow_id = several.create(*[job(f"j{number}", "touch a.crash; sleep 0.3") for number in range(6)])
    outcome = run(several, workflow_id, "a:1 b:1")
    (trouble,) = outcome.troubles
    assert "it was made to crash" in trouble
    assert outcome.sites[0].trouble
    assert outcome.counts.get("completed", 0) + outcome.counts.get("running", 0) == 6


# --- processes ------------------------------------------------------------------------------------


def test_the_report_names_the_sites(several: Bench) -> None:
    """In JSON; a warning is on standard error."""
    (several.folder / "c.down").write_text("host c: no answer from it")
    workflow_id = several.create(job("a", "true"), job("b", "exit 3"))
    process = begin(several, workflow_id, "a:2 c:2")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["sites"] == [
        {"hostname": "host-a", "site": "a", "attempts": 2, "failed": 1, "trouble": None},
        {"hostname": "c", "site": "c", "attempts": 0, "failed": 0, "trouble": "host c: no answer from it"},
    ]
    said = err.decode()
    assert "Warning: c takes no part until it can begin: no answer from it\n" in said


def test_the_run_ends_without_a_site_that_is_still_being_made(several: Bench) -> None:
    """A host that answers nothing takes its time to connect to; the workflow is complete before that."""
    slow = several.folder / "b.slow"
    slow.touch()
    workflow_id = several.create(job("first", "true"))
    try:
        outcome = run(several, workflow_id, "a b")
        assert outcome.counts == {"completed": 1}
    finally:
        slow.unlink()
        for thread in threading.enumerate():
            if thread.name == "torc-site-b":
                thread.join(30)


def test_one_signal_ends_all_sites_cleanly(several: Bench) -> None:
    """The jobs of all of them get SIGTERM; those not begun stay ready."""
    trap = "trap 'exit 0' TERM; touch up.$TORC_JOB_NAME; while :; do sleep 0.02; done"
    jobs = [job(f"j{number}", trap, supports_termination=True, resource_requirements=0) for number in range(6)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    process = begin(several, workflow_id, "a:2 b:2")
    eventually(lambda: len(list(several.folder.glob("up.*"))) == 4)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert Counter(several.statuses(workflow_id).values()) == {"terminated": 4, "ready": 2}
    assert json.loads(out)["status"] == "interrupted"
    assert sum(site["attempts"] for site in json.loads(out)["sites"]) == 4


def test_a_second_signal_kills_on_all_sites(several: Bench) -> None:
    """As with one runner."""
    trap = "trap 'touch heard.$TORC_JOB_NAME' TERM; touch up.$TORC_JOB_NAME; while :; do sleep 0.02; done"
    jobs = [job(f"j{number}", trap, supports_termination=True, resource_requirements=0) for number in range(4)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    process = begin(several, workflow_id, "a:2 b:2", "--term-lead-s", "1000")
    eventually(lambda: len(list(several.folder.glob("up.*"))) == 4)
    process.send_signal(signal.SIGINT)
    eventually(lambda: len(list(several.folder.glob("heard.*"))) == 4)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert [result.signal for result in several.results(workflow_id).values()] == [9] * 4


def test_a_second_signal_leaves_sites_whose_plugin_hangs(several: Bench) -> None:
    """The next run takes their jobs over."""
    project_plugin(several.folder, "hanging", HEAD + "import time\n" + classifier("time.sleep(600)"))
    jobs = [job("ends", "exit 3", resource_requirements=0), job("goes_on", "sleep 600", resource_requirements=0)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    process = begin(several, workflow_id, "a:1 b:1")
    assert process.stderr is not None
    line = f"plugin hanging takes longer than {SLOW_S:g} s in torc_classify_exit\n"
    next(each for each in process.stderr if each.decode().endswith(line))
    process.send_signal(signal.SIGINT)
    next(each for each in process.stderr if each.decode().endswith(line))  # about the job that was stopped
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert run(several, workflow_id, "c:2").is_complete
    assert {name: result.attempt_id for name, result in several.results(workflow_id).items()} == {
        "ends": 1,
        "goes_on": 1,
    }


@pytest.mark.parametrize("sites", ["a:2 b:2", "b:4", "c:2 d:2", None])
def test_the_next_run_takes_over_all_sites(several: Bench, sites: str | None) -> None:
    """After SIGKILL every attempt goes on and ends once, also under a run without these sites."""
    count = "echo $TORC_JOB_NAME >> ran; touch up.$TORC_JOB_NAME; until [ -e go ]; do sleep 0.02; done; exit 5"
    jobs = [job(f"j{number}", count, resource_requirements=0) for number in range(6)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    process = begin(several, workflow_id, "a:2 b:2")
    eventually(lambda: len(list(several.folder.glob("up.*"))) == 4)
    process.kill()
    process.communicate()
    (several.folder / "go").touch()
    outcome = several.run(workflow_id) if sites is None else run(several, workflow_id, sites)
    assert outcome.counts == {"failed": 6}
    assert Counter((several.folder / "ran").read_text().split()) == dict.fromkeys(several.jobs(workflow_id), 1)
    assert all(result.return_code == 5 for result in several.results(workflow_id).values())
    assert not any(each.is_active for each in several.client.find(ComputeNodeRecord, workflow_id=workflow_id))


def test_a_site_that_cannot_begin_leaves_its_attempts_to_another(several: Bench) -> None:
    """They were left by a run that was killed; the site that works adopts them."""
    count = "echo $TORC_JOB_NAME >> ran; touch up.$TORC_JOB_NAME; until [ -e go ]; do sleep 0.02; done"
    jobs = [job(f"j{number}", count, resource_requirements=0) for number in range(4)]
    workflow_id = several.create(*jobs, resource_requirements=[requirements()])
    process = begin(several, workflow_id, "a:2 b:2")
    eventually(lambda: len(list(several.folder.glob("up.*"))) == 4)
    process.kill()
    process.communicate()
    (several.folder / "b.down").write_text("gone")
    (several.folder / "go").touch()
    outcome = run(several, workflow_id, "a:2 b:2")
    assert outcome.counts == {"completed": 4}
    assert Counter((several.folder / "ran").read_text().split()) == dict.fromkeys(several.jobs(workflow_id), 1)


def test_jobs_for_sites_need_a_run_of_their_own(several: Bench) -> None:
    """A runner of another executor starts nothing there, and says which command does."""
    workflow_id = several.create(job("a", "true", executor="sites"))
    several.run(workflow_id)
    result = several.results(workflow_id)["a"]
    assert result.exit_class == "launch_failure"
    assert f"torc run {workflow_id} --executor sites" in (result.reason or "")
