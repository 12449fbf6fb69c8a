"""``torc why-failed`` on real runs."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.models.exchange import EndedReport, ExchangeRequest
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

BROKEN = """
import sys
def load(number):
    raise ValueError(f"bad value {number} in {sys.path[0]}/case_{number}.csv")
load(int(sys.argv[1]))
"""
SWEEP = """
name: sweep
resource_requirements:
  - {name: small, num_cpus: 2, memory: 100m, runtime: PT1H}
jobs:
  - {name: 'sim_{i}', command: 'python3 broken.py {i}', resource_requirements: small, parameters: {i: '1:100'}}
  - {name: collect, command: 'true', depends_on_regexes: ['sim_.*']}
  - {name: publish, command: 'true', depends_on: [collect]}
  - {name: segfault, command: 'kill -SEGV $$'}
  - {name: good, command: 'true'}
"""
ENDINGS = """
name: endings
files:
  - {name: result, path: nowhere.dat}
resource_requirements:
  - {name: hasty, num_cpus: 1, memory: 50m, runtime: PT1S}
jobs:
  - {name: code, command: 'echo working; echo no space left on device >&2; exit 3'}
  - {name: killed, command: 'kill -KILL $$'}
  - {name: missing, command: 'true', output_files: [result]}
  - {name: late, command: 'echo begun; exec sleep 100', resource_requirements: hasty}
  - {name: unfound, command: 'no-such-program'}
"""


def document(done: Any) -> dict[str, Any]:
    """Return what a command printed as JSON."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run(torc: Any, work: Path, spec: str, *options: str) -> dict[str, int]:
    """Run a workflow that fails; return the ids of its jobs by name."""
    (work / "spec.yaml").write_text(spec)
    done = torc("run", "spec.yaml", "-f", "json", *options)
    assert done.returncode == 1, done.stderr
    workflow_id = json.loads(done.stdout)["workflow_id"]
    jobs = json.loads(torc("jobs", "list", workflow_id, "--limit", 1000, "-f", "json").stdout)["jobs"]
    return {job["name"]: job["id"] for job in jobs}


def test_a_failing_sweep_is_one_root(torc: Any, work: Path, tmp_path: Path) -> None:
    """A hundred failures of one shared script, and the jobs canceled because of them, are one group."""
    (work / "broken.py").write_text(BROKEN)
    ids = run(torc, work, SWEEP)
    report = document(torc("why-failed", 1, "-f", "json", cwd=tmp_path))
    assert (report["kind"], report["workflow_id"], report["total_jobs"]) == ("workflow", 1, 104)
    assert (report["failed_jobs"], report["canceled_jobs"], report["canceled_otherwise"]) == (101, 2, 0)
    first, second = report["groups"]
    assert first["job_ids"] == [ids[f"sim_{number}"] for number in range(1, 101)]
    assert first["canceled_job_ids"] == [ids["collect"], ids["publish"]]
    assert first["sign"] == "ValueError: bad value # in …/case_#.csv"
    assert (first["verdict"], first["return_code"]) == ("user_error", 1)
    assert first["request"] == {"num_cpus": 2, "memory": "100m", "runtime": "PT1H", "num_gpus": 0, "num_nodes": 1}
    assert first["lost_cpu_hours"] > 0
    example = first["example"]["log"]
    assert Path(example["path"]).read_text().splitlines()[example["line"] - 1] == example["text"]
    assert (second["verdict"], second["job_ids"], second["canceled_jobs"]) == ("signaled", [ids["segfault"]], 0)
    assert report["lost_cpu_hours"] == pytest.approx(first["lost_cpu_hours"] + second["lost_cpu_hours"])

    text = torc("why-failed", 1)
    assert text.returncode == 0
    assert "101 of 104 jobs failed, for 2 reasons; 2 jobs were canceled because of them" in text.stdout
    assert len(text.stdout.splitlines()) < 30

    canceled = document(torc("why-failed", "--job", ids["publish"], "-f", "json"))
    assert (canceled["verdict"], len(canceled["caused_by"])) == ("upstream_failed", 100)
    assert "torc why-failed --job" in torc("why-failed", "--job", ids["publish"]).stdout
    good = torc("why-failed", "--job", ids["good"])
    assert (good.returncode, "No attempt of it has failed" in good.stdout) == (0, True)


def test_every_ending_has_its_verdict_and_evidence(torc: Any, work: Path) -> None:
    """Exit codes, signals, limits, missing outputs; JSON has the same keys for all of them."""
    ids = run(torc, work, ENDINGS, "--term-lead-s", "0.2")
    reports = {name: document(torc("why-failed", "--job", id_, "-f", "json")) for name, id_ in ids.items()}
    assert {name: report["verdict"] for name, report in reports.items()} == {
        "code": "user_error",
        "killed": "signaled",
        "missing": "output_missing",
        "late": "timeout",
        "unfound": "user_error",
    }
    assert len({tuple(report) for report in reports.values()}) == 1, "the shape does not depend on the ending"
    assert {report["confidence"] for report in reports.values()} == {1.0}
    code = reports["code"]
    assert code["telling_line"]["text"] == "no space left on device"
    assert (code["telling_line"]["line"], code["telling_line"]["pattern"]) == (1, "Disk full")
    assert [item["text"] for item in code["evidence"] if item["kind"] == "observed"] == ["exit_code is 3"]
    assert reports["killed"]["evidence"][0]["text"] == "signal is 9 (SIGKILL)"
    assert "nowhere.dat" in reports["missing"]["reason"]
    (limit,) = (item for item in reports["late"]["evidence"] if item["kind"] == "runtime")
    assert limit["limit"] == 1.0
    assert limit["used"] > 1.0
    (tried,) = reports["late"]["tried"]
    assert tried["request"] == {"num_cpus": 1, "memory": "50m", "runtime": "PT1S"}
    assert all(report["next"]["command"].startswith("torc ") for report in reports.values())
    assert "command not found" in reports["unfound"]["telling_line"]["pattern"].lower()

    text = torc("why-failed", "--job", ids["code"]).stdout
    assert f"✗ code (job {ids['code']} of workflow 1) failed: exit code 3 (user_error)" in text
    assert "    no space left on device\n" in text
    assert f"  log: output/job_stdio/job_wf1_j{ids['code']}_r1_a1.e:1\n" in text
    assert text.endswith("Next: torc recover 1\n"), "a job of the workflow ran out of time"


def test_logs_that_are_gone_are_named(torc: Any, work: Path) -> None:
    """The verdict needs none of them."""
    ids = run(torc, work, "name: a\njobs:\n  - {name: one, command: exit 3}\n")
    for log in (work / "output" / "job_stdio").iterdir():
        log.unlink()
    report = document(torc("why-failed", "--job", ids["one"], "-f", "json"))
    assert (report["verdict"], report["telling_line"]) == ("user_error", None)
    assert {entry["reason"] for entry in report["unreadable_logs"]} == {"No such file or directory"}
    assert "None of their logs can be read from here" in torc("why-failed", 1).stdout


def test_logs_that_are_empty_were_read(torc: Any, work: Path) -> None:
    """They have no lines, but they count as read."""
    run(torc, work, "name: a\njobs:\n  - {name: one, command: exit 3}\n")
    assert "can be read" not in torc("why-failed", 1).stdout
    assert document(torc("why-failed", 1, "-f", "json"))["failed_jobs_with_logs"] == 1


def test_what_waits_for_a_verdict_gets_one_next(torc: Any, work: Path) -> None:
    """The job and the workflow say so."""
    spec = "name: a\nuse_pending_failed: true\ncompute_node_wait_for_new_jobs_seconds: 0\njobs:\n"
    run(torc, work, f"{spec}  - {{name: one, command: exit 3}}\n")
    for asked in (("--job", 1), (1,)):
        assert torc("why-failed", *asked).stdout.endswith("\nNext: torc pending list 1\n")
    assert torc("pending", "fail", 1, "--reason", "the input is wrong").returncode == 0
    text = torc("why-failed", "--job", 1).stdout
    assert "attempt 1 of run 1: fail by " in text
    assert "(person): the input is wrong" in text
    (verdicts,) = document(torc("why-failed", "--job", 1, "-f", "json"))["judged"]
    assert (verdicts["action"], verdicts["judge_kind"]) == ("fail", "person")


def test_attempts_of_all_runs_are_told(torc: Any, work: Path) -> None:
    """The report of a job that failed and then completed has the cost of its failures."""
    spec = (
        "name: a\nfailure_handlers:\n  - {name: h, rules: [{match_all_exit_codes: true, max_retries: 2}]}\n"
        "jobs:\n  - {name: one, command: '[ $TORC_ATTEMPT_ID = 2 ]', failure_handler: h}\n"
    )
    (work / "spec.yaml").write_text(spec)
    assert torc("run", "spec.yaml").returncode == 0
    report = document(torc("why-failed", "--job", 1, "-f", "json"))
    assert (report["is_failed"], report["status"], report["next"]) == (False, "completed", None)
    assert [entry["status"] for entry in report["tried"]] == ["failed", "completed"]
    assert report["lost_cpu_hours"] == report["tried"][0]["cost_cpu_hours"]
    assert "Attempt 1 in run 1 failed: exit code 1" in torc("why-failed", "--job", 1).stdout
    of_workflow = document(torc("why-failed", 1, "-f", "json"))
    assert (of_workflow["groups"], of_workflow["failed_jobs"]) == ([], 0)
    assert of_workflow["retried_cpu_hours"] == pytest.approx(report["lost_cpu_hours"])


def test_a_recovery_that_paid_is_told(torc: Any, work: Path) -> None:
    """Old request, new request, who decided, and that it helped."""
    spec = (
        "name: a\nresource_requirements:\n  - {name: hasty, num_cpus: 1, memory: 50m, runtime: PT1S}\n"
        "jobs:\n  - {name: late, command: sleep 2, resource_requirements: hasty}\n"
    )
    ids = run(torc, work, spec, "--term-lead-s", "0.2")
    done = torc("recover", 1, "--runtime-multiplier", "120")
    assert done.returncode == 0, done.stderr
    assert torc("run", 1).returncode == 0
    report = document(torc("why-failed", "--job", ids["late"], "-f", "json"))
    first, second = report["tried"]
    assert (first["exit_class"], first["request"]["runtime"], first["paid"]) == ("timeout", "PT1S", None)
    assert second["request_before"]["runtime"] == "PT1S"
    assert second["request"]["runtime"] != "PT1S"
    assert (second["status"], second["paid"]) == ("completed", True)
    assert "oom" in second["decided_by"]
    assert "PT1S → " in torc("why-failed", "--job", ids["late"]).stdout


def test_the_argument_is_always_a_workflow(torc: Any, work: Path) -> None:
    """An id that only a job has is an error with the right command; a name is enough where it is unique."""
    for name, command in (("fine", "true"), ("bad", "exit 1")):
        spec = f"name: {name}\njobs:\n  - {{name: '{name}_{{i}}', command: '{command}', parameters: {{i: '1:2'}}}}\n"
        (work / "spec.yaml").write_text(spec)
        torc("run", "spec.yaml")
    assert document(torc("why-failed", 1, "-f", "json"))["kind"] == "workflow"
    assert document(torc("why-failed", 2, "-f", "json"))["kind"] == "workflow"
    for command in ("why-failed", "explain"):
        done = torc(command, 3)
        assert done.returncode == 2
        assert done.stderr == (
            f"Error: no workflow has the id 3; job 3 is 'bad_1' of workflow 2: 'torc {command} --job 3'\n"
        )
        for asked in (("--job", 2), ("--job", "fine_2"), (1, "--job", "fine_2"), (1, "--job", 2)):
            assert document(torc(command, *asked, "-f", "json"))["job_name"] == "fine_2"
        assert "has no job 'fine_2'" in torc(command, 2, "--job", "fine_2").stderr
        assert "none of your workflows has a job 'x'" in torc(command, "--job", "x").stderr
    torc("workflows", "create", "spec.yaml")
    for command in ("why-failed", "explain"):
        assert "have several jobs 'bad_1'" in torc(command, "--job", "bad_1").stderr


def test_the_layout(torc: Any, work: Path) -> None:
    """The causes with their jobs, lines and log, then what a person does first, and the one next command."""
    spec = (
        "name: sweep\njobs:\n  - {name: prep, command: 'true'}\n"
        "  - {name: 'train_{i}', command: 'echo step >&2; echo \"ValueError: bad rate\" >&2; exit 3', "
        "parameters: {i: '1:7'}}\n  - {name: report, command: 'true', depends_on: [train_1]}\n"
    )
    ids = run(torc, work, spec)
    log = f"output/job_stdio/job_wf1_j{ids['train_1']}_r1_a1.e"
    assert torc("why-failed", 1).stdout.splitlines() == [
        "✗ sweep (workflow 1): 7 of 9 jobs failed, for one reason; 1 job was canceled because of them",
        "",
        "1  exit code 3 (user_error)",
        "   7 jobs: train_1, train_2, train_3, train_4, train_5 and 2 others",
        "   canceled because of them: report",
        "     step",
        "     ValueError: bad rate",
        f"   log: {log}:2",
        "   hint: The traceback in the log names file and line.",
        "   The program ended by itself with this code.",
        "",
        "Correct the error in the command or its input first.",
        "Next: torc run 1 --retry-failed",
    ]
    assert torc("explain", 1).stdout.splitlines() == [
        "✗ sweep (workflow 1) failed: 1 of 9 jobs done, 7 failed, 1 canceled",
        "",
        "  ✗ 7 jobs failed: torc why-failed 1 shows the causes",
        "      train_1, train_2, train_3, train_4, train_5 and 2 others",
        "  ⊘ 1 job was canceled, because train_1 failed",
        "      report",
        "",
        "Correct the error in the command or its input first.",
        "Next: torc run 1 --retry-failed",
    ]
    commands = [document(torc(name, 1, "-f", "json"))["next_command"] for name in ("why-failed", "explain")]
    assert commands == ["torc run 1 --retry-failed"] * 2
    narrow = torc("why-failed", 1, env={"COLUMNS": "40"}).stdout.splitlines()
    assert "     ValueError: bad rate" in narrow
    assert f"   log: {log}:2" in narrow, "a path is never shortened"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["99"], 1, "not found"),
        (["--job", "99"], 1, "not found"),
        (["1", "--output-dir", "nowhere"], 2, "does not exist"),
        ([], 2, "which workflow"),
        (["many"], 2, "many"),
    ],
)
def test_mistakes_are_told_in_a_sentence(torc: Any, arguments: list[str], status: int, words: str) -> None:
    """With the exit code of a usage error."""
    done = torc("why-failed", *arguments)
    assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_thousands_of_failures_are_a_few_lines(torc: Any, server: str, tmp_path: Path) -> None:
    """Ten thousand failed jobs with logs of their own: two roots."""
    count = 10_000
    jobs = [PlannedJob(name=f"job{number}", command="false") for number in range(count)]
    stdio = tmp_path / "output" / "job_stdio"
    stdio.mkdir(parents=True)
    with TorcClient(server) as client:
        plan = Plan(WorkflowRecord(name="many", user="tester"), jobs=jobs)
        id_ = client.create_from_plan(plan, initialize=True).id
        node = register(client, id_, num_cpus=count, memory_gb=1000.0)
        claimed = client.exchange(id_, ExchangeRequest(node, 1, slots=count)).jobs
        assert len(claimed) == count
        ended = []
        for number, job in enumerate(claimed):
            kind = "RuntimeError: step" if number % 4 else "OSError: disk"
            (stdio / f"job_wf{id_}_j{job.id}_r1_a1.e").write_text(f"working on {job.id}\n{kind} {job.id}\n")
            seen = {"executor": "local", "exit_code": 1}
            ended.append(
                EndedReport(
                    job.id,
                    1,
                    "failed",
                    1,
                    3600.0,
                    time.time(),
                    exit_code=1,
                    exit_class="user_error",
                    reason="exit code 1",
                    observation=seen,
                )
            )
        client.exchange(id_, ExchangeRequest(node, 1, ended=ended))
    done = torc("why-failed", id_, "--output-dir", tmp_path / "output", "-f", "json", "--url", server)
    report = document(done)
    assert [(group["sign"], group["failed_jobs"]) for group in report["groups"]] == [
        ("RuntimeError: step #", 7500),
        ("OSError: disk #", 2500),
    ]
    assert report["lost_cpu_hours"] == pytest.approx(count)
    assert report["failed_jobs_with_logs"] == count
