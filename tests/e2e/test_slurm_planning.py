"""Commands that plan Slurm schedulers, as they are typed; no cluster is needed where a profile describes one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from slurm_fake import FakeSlurm

pytestmark = pytest.mark.e2e

CONFIG = """
[client.hpc.custom_profiles.lab]
display_name = "Lab"
default_account = "house"

[[client.hpc.custom_profiles.lab.partitions]]
name = "day"
cpus_per_node = 8
memory_mb = 16000
max_walltime_secs = 86400
shared = true

[[client.hpc.custom_profiles.lab.partitions]]
name = "gpu"
cpus_per_node = 8
memory_mb = 16000
max_walltime_secs = 86400
gpus_per_node = 2
"""
SPEC = """
name: pipeline
resource_requirements:
  - {name: small, num_cpus: 2, memory: 1g, runtime: PT1H}
  - {name: gpu, num_cpus: 2, num_gpus: 1, memory: 1g, runtime: PT2H}
jobs:
  - {name: prepare, command: 'true', resource_requirements: small}
  - {name: 'work_{i}', command: 'true', resource_requirements: small, depends_on: [prepare], parameters: {i: '1:8'}}
  - {name: train, command: 'true', resource_requirements: gpu, depends_on: [prepare]}
"""
PLANNED = [
    ("small_scheduler", "day", "01:30:00", [1]),
    ("small_deferred_scheduler", "day", "01:30:00", [2]),
    ("gpu_deferred_scheduler", "gpu", "03:00:00", [1]),
]


@pytest.fixture
def lab(work: Path) -> Path:
    """A folder with a cluster's profile and a spec."""
    (work / "torc.toml").write_text(CONFIG)
    (work / "workflow.yaml").write_text(SPEC)
    return work


def shown(values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["name"], each["partition"], each["walltime"], each["num_allocations"])
        for each in values["slurm_schedulers"]
    ]


# --- generate -------------------------------------------------------------------------------------


def test_a_spec_is_printed_in_its_own_format(torc: Torc, lab: Path) -> None:
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab")
    assert (done.returncode, done.stderr) == (0, "")
    (lab / "made.yaml").write_text(done.stdout)
    checked = torc("workflows", "create", "made.yaml", "--dry-run", "-f", "json")
    values = json.loads(checked.stdout)
    assert values["valid"]
    assert values["summary"]["scheduler_names"] == [name for name, *_ in PLANNED]
    assert values["summary"]["job_count_before_expansion"] == 3
    assert "account: house" in done.stdout


@pytest.mark.parametrize("form", ["yaml", "json", "json5", "kdl"])
def test_a_spec_is_written_in_any_format(torc: Torc, lab: Path, form: str) -> None:
    done = torc("slurm", "generate", "workflow.yaml", "--hpc-profile", "lab", "--account", "mine", "-o", f"made.{form}")
    assert done.returncode == 0, done.stderr
    assert f"torc submit made.{form}" in done.stdout
    plan = json.loads(torc("workflows", "execution-plan", f"made.{form}", "-f", "json").stdout)
    assert [
        [
            (each["scheduler"], each["num_allocations"], len(each["job_names"]))
            for each in event["scheduler_allocations"]
        ]
        for event in plan["events"]
    ] == [[("small_scheduler", 1, 1)], [("small_deferred_scheduler", 2, 8), ("gpu_deferred_scheduler", 1, 1)]]


def test_scripts_get_everything_at_once(torc: Torc, lab: Path) -> None:
    values = json.loads(torc("slurm", "generate", "workflow.yaml", "--profile", "lab", "-f", "json").stdout)
    assert shown(values) == PLANNED
    assert (values["profile"], values["output"], values["action_count"]) == ("lab", None, 3)
    assert values["workflow"]["jobs"][1] == {
        "parameters": {"i": "1:8"},
        "name": "work_{i}",
        "command": "true",
        "resource_requirements": "small",
        "scheduler": "small_deferred_scheduler",
        "depends_on": ["prepare"],
    }


def test_warnings_about_keys_are_printed(torc: Torc, lab: Path) -> None:
    """Once, with the line; the planned spec no longer has the key."""
    (lab / "workflow.yaml").write_text(SPEC + "enable_ro_crate: true\n")
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Warning: ") == 1
    assert "workflow.yaml:10:1: enable_ro_crate: " in done.stderr
    assert "enable_ro_crate" not in done.stdout


def test_a_dry_run_writes_nothing(torc: Torc, lab: Path) -> None:
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab", "--dry-run", "-o", "made.yaml")
    assert done.returncode == 0
    assert "small_deferred_scheduler" in done.stdout
    assert not (lab / "made.yaml").exists()


def test_actions_can_be_left_out(torc: Torc, lab: Path) -> None:
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab", "--no-actions")
    assert "slurm_schedulers:" in done.stdout
    assert "actions:" not in done.stdout


def test_accounts_come_from_the_nearest_place(torc: Torc, lab: Path) -> None:
    """The command line, the workflow's defaults, the profile."""
    command = ("slurm", "generate", "workflow.yaml", "--profile", "lab", "-f", "json")
    (lab / "workflow.yaml").write_text(SPEC + "slurm_defaults: {account: project, qos: high}\n")
    assert {each["account"] for each in json.loads(torc(*command).stdout)["slurm_schedulers"]} == {"project"}
    given = json.loads(torc(*command, "--account", "mine").stdout)
    assert {each["account"] for each in given["slurm_schedulers"]} == {"mine"}


def test_schedulers_are_replaced_only_on_demand(torc: Torc, lab: Path) -> None:
    command = ("slurm", "generate", "made.yaml", "--profile", "lab")
    torc("slurm", "generate", "workflow.yaml", "--profile", "lab", "-o", "made.yaml")
    before = (lab / "made.yaml").read_text()
    refused = torc(*command, "-o", "made.yaml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "has schedulers already" in refused.stderr
    for flag in ("--overwrite", "--force"):
        assert torc(*command, flag).stdout == before


BAD = [
    (["--group-by", "colour"], "", "--group-by is 'colour'; expected one of resource-requirements, partition"),
    (["--walltime-strategy", "x"], "", "--walltime-strategy is 'x'; expected one of max-job-runtime"),
    (["--walltime-multiplier", "0.5"], "", "--walltime-multiplier"),
    (["--profile", "nowhere"], "", "unknown HPC profile 'nowhere'"),
    (["-o", "made.txt"], "", "must end in one of"),
    (["-o", "none/made.yaml"], "", "cannot write none/made.yaml"),
    ([], "slurm_defaults: {mem: 4g}", "'mem' cannot be a default"),
    ([], "slurm_defaults: {job_name: x}", "'job-name' cannot be a default"),
]


@pytest.mark.parametrize(("arguments", "more", "message"), BAD)
def test_what_is_wrong_is_said(torc: Torc, lab: Path, arguments: list[str], more: str, message: str) -> None:
    (lab / "workflow.yaml").write_text(f"{SPEC}{more}\n")
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("found", "instead", "message"),
    [
        ("num_cpus: 2, memory: 1g", "num_cpus: 99, memory: 1g", "day: its nodes have 8 CPUs"),
        ("runtime: PT1H", "runtime: P1D", "compute_node_expiration_buffer_seconds"),
        (", resource_requirements: small}", "}", "jobs without resource_requirements: prepare"),
    ],
)
def test_jobs_that_fit_nowhere_are_named(torc: Torc, lab: Path, found: str, instead: str, message: str) -> None:
    (lab / "workflow.yaml").write_text(SPEC.replace(found, instead))
    done = torc("slurm", "generate", "workflow.yaml", "--profile", "lab")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


# --- create-slurm and regenerate ------------------------------------------------------------------


def test_a_workflow_is_created_with_schedulers(torc: Torc, lab: Path) -> None:
    command = ("workflows", "create-slurm", "workflow.yaml", "--hpc-profile", "lab")
    dry = torc(*command, "--dry-run", "-f", "json")
    values = json.loads(dry.stdout)
    assert (values["valid"], values["summary"]["slurm_scheduler_count"]) == (True, 3)
    assert json.loads(torc("workflows", "list", "-f", "json").stdout) == []
    made = json.loads(torc(*command, "--no-resource-monitoring", "-f", "json").stdout)
    assert shown(made) == PLANNED
    assert made["job_count"] == 10
    stored = json.loads(torc("workflows", "get", made["id"], "-f", "json").stdout)
    assert json.loads(stored["resource_monitor_config"]) == {"enabled": False}
    actions = json.loads(torc("workflows", "list-actions", made["id"], "-f", "json").stdout)
    assert [each["trigger_type"] for each in actions["actions"]] == ["on_workflow_start", *["on_jobs_ready"] * 2]
    told = torc(*command)
    assert "Created workflow with ID: 2" in told.stdout
    assert "gpu_deferred_scheduler" in told.stdout


def test_jobs_that_are_left_get_new_schedulers(torc: Torc, lab: Path) -> None:
    made = json.loads(torc("workflows", "create-slurm", "workflow.yaml", "--profile", "lab", "-f", "json").stdout)
    command = ("slurm", "regenerate", made["id"], "--profile", "lab")
    early = torc(*command)
    assert (early.returncode, early.stdout) == (2, "")
    assert "wait for a run to begin" in early.stderr
    torc("workflows", "initialize", made["id"])
    dry = json.loads(torc(*command, "--dry-run", "-f", "json").stdout)
    assert (dry["dry_run"], dry["job_count"], dry["scheduler_ids"]) == (True, 10, [])
    assert [name for name, *_ in shown(dry)] == [f"{name}_r1" for name, *_ in PLANNED]
    assert (dry["pending_jobs"], dry["submitted"], dry["warnings"]) == (10, False, [])
    assert dry["schedulers_created"] == dry["slurm_schedulers"]
    assert dry["total_allocations"] == sum(sum(each["num_allocations"]) for each in dry["slurm_schedulers"])
    told = torc(*command, "--account", "mine")
    assert told.returncode == 0, told.stderr
    assert "10 job(s) have new schedulers; 3 action(s) that requested nodes were replaced" in told.stdout
    assert f"torc slurm schedule-nodes {made['id']} --scheduler-config-id 4 -n 1" in told.stdout
    actions = json.loads(torc("workflows", "list-actions", made["id"], "-f", "json").stdout)["actions"]
    assert [each["executed"] for each in actions] == [True, True, True, False, False]
    jobs = json.loads(torc("jobs", "list", made["id"], "-f", "json").stdout)["jobs"]
    assert {each["scheduler_id"] for each in jobs} == {4, 5, 6}
    again = json.loads(torc(*command, "-f", "json").stdout)
    assert [each["account"] for each in again["slurm_schedulers"]] == ["mine"] * 3
    assert len(again["retired_action_ids"]) == 2


def test_nodes_are_asked_for_by_the_new_schedulers_alone(torc: Torc, lab: Path, server: str) -> None:
    """The actions that they replace were never carried out, and are not taken for submissions that were killed."""
    fake = FakeSlurm(lab / "slurm")
    path = f"{fake.write_programs(lab / 'bin')}{os.pathsep}{os.environ['PATH']}"
    env = {"TORC_API_URL": server, "PATH": path}
    made = json.loads(
        torc("workflows", "create-slurm", "workflow.yaml", "--profile", "lab", "-f", "json", env=env).stdout
    )
    torc("workflows", "initialize", made["id"], env=env)
    for count in (1, 2):
        done = torc("slurm", "regenerate", made["id"], "--profile", "lab", "--submit", "-f", "json", env=env)
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["allocations"]) == 1, "for the only job that can start"
        assert len(fake.calls("sbatch")) == count


def test_there_may_be_nothing_to_do(torc: Torc, lab: Path) -> None:
    (lab / "empty.yaml").write_text("name: empty\njobs: [{name: a, command: 'true'}]\n")
    made = json.loads(torc("run", "empty.yaml", "-f", "json").stdout)
    done = torc("slurm", "regenerate", made["workflow_id"], "--profile", "lab")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to do" in done.stdout
    wrong = torc("slurm", "regenerate", made["workflow_id"], "--profile", "lab", "--include-job-ids", "1,x")
    assert (wrong.returncode, "--include-job-ids is '1,x'" in wrong.stderr) == (2, True)


# --- submit-slurm ---------------------------------------------------------------------------------


def test_a_server_that_ends_at_once_is_of_no_use(torc: Torc, lab: Path) -> None:
    done = torc("submit-slurm", "workflow.yaml", "--profile", "lab")
    assert (done.returncode, done.stdout) == (2, "")
    assert "torc-server run" in done.stderr


def test_missing_data_is_told_before_anything_is_created(torc: Torc, lab: Path, server: str) -> None:
    needs = "files: [{name: f, path: f.txt}]\njobs:\n  - {name: r, command: 'true', resource_requirements: small, "
    (lab / "workflow.yaml").write_text(SPEC.replace("jobs:\n", f"{needs}input_files: [f]}}\n"))
    before = torc("--url", server, "workflows", "list", "-f", "json").stdout
    done = torc("submit-slurm", "workflow.yaml", "--profile", "lab", env={"TORC_API_URL": server})
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing input files that no job writes: f.txt" in done.stderr
    assert torc("--url", server, "workflows", "list", "-f", "json").stdout == before


def test_a_look_before_the_submission(torc: Torc, lab: Path) -> None:
    done = torc("submit-slurm", "workflow.yaml", "--profile", "lab", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "small_deferred_scheduler" in done.stdout
    assert "Validation: PASSED" in done.stdout


def test_an_existing_workflow_is_submitted(torc: Torc, lab: Path, server: str) -> None:
    """One without schedulers gets them, in each run anew; one that was created with them keeps them."""
    fake = FakeSlurm(lab / "slurm")
    path = f"{fake.write_programs(lab / 'bin')}{os.pathsep}{os.environ['PATH']}"
    env = {"TORC_API_URL": server, "PATH": path}
    made = json.loads(torc("workflows", "create", "workflow.yaml", "-f", "json", env=env).stdout)
    command = ("submit-slurm", made["id"], "--profile", "lab")
    refused = torc(*command, "-u", "ann", env=env)
    assert (refused.returncode, "for a spec file" in refused.stderr) == (2, True)
    dry = json.loads(torc(*command, "--dry-run", "-f", "json", env=env).stdout)
    assert shown(dry) == PLANNED
    status = json.loads(torc("workflows", "status", made["id"], "-f", "json", env=env).stdout)
    assert status["status"] == "uninitialized", "a dry run changes nothing"
    done = torc(*command, env=env)
    assert done.returncode == 0, done.stderr
    assert f"Submitted workflow {made['id']}: 1 allocation" in done.stdout
    again = torc(*command, env=env)
    assert (again.returncode, "were asked for before" in again.stderr) == (2, True)
    assert len(fake.calls("sbatch")) == 1
    assert torc("workflows", "reset-status", made["id"], "--force", "-r", "-y", env=env).returncode == 0
    next_run = json.loads(torc(*command, "-f", "json", env=env).stdout)
    assert (len(next_run["allocations"]), len(next_run["scheduler_ids"])) == (1, 3)
    own = json.loads(
        torc("workflows", "create-slurm", "workflow.yaml", "--profile", "lab", "-f", "json", env=env).stdout
    )
    kept = json.loads(torc("submit-slurm", own["id"], "-f", "json", env=env).stdout)
    assert (len(kept["allocations"]), "scheduler_ids" in kept) == (1, False)
    unknown = torc("submit-slurm", 987654, env=env)
    assert (unknown.returncode, "987654" in unknown.stderr) == (1, True)


def test_missing_data_does_not_stop_a_submission_with_force(torc: Torc, lab: Path, server: str) -> None:
    fake = FakeSlurm(lab / "slurm")
    path = f"{fake.write_programs(lab / 'bin')}{os.pathsep}{os.environ['PATH']}"
    env = {"TORC_API_URL": server, "PATH": path}
    needs = "files: [{name: f, path: f.txt}]\njobs:\n  - {name: r, command: 'true', resource_requirements: small, "
    (lab / "workflow.yaml").write_text(SPEC.replace("jobs:\n", f"{needs}input_files: [f]}}\n"))
    command = ("workflows", "create-slurm", "workflow.yaml", "--profile", "lab", "-f", "json")
    made = json.loads(torc(*command, env=env).stdout)["id"]
    refused = torc("workflows", "submit", made, env=env)
    assert (refused.returncode, "missing input files" in refused.stderr) == (2, True)
    assert torc("workflows", "submit", made, "--force", env=env).returncode == 0
    assert len(fake.calls("sbatch")) >= 1
