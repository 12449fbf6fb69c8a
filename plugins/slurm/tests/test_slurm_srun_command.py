"""The command line of steps, and the allocation that an environment describes."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.cluster.allocation_context import AllocationContext, allocation_context_of, inside_allocation
from torc_slurm.cluster.scontrol import parse_record
from torc_slurm.steps.srun_command import srun_command, step_environment, step_name

from torc_framework.api import Attempt, AttemptKey, Resources, RunnerContext

CONTEXT = RunnerContext(3, 2, "/out", "/work", "http://127.0.0.1:1")
ALLOCATION = AllocationContext(42, cpus=4, memory_bytes=1 << 30)


def attempt(resources: Resources, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "key": AttemptKey(7, 1),
        "job_name": "j",
        "command": "true",
        "environment": {},
        "stdout_path": "/out/100%.o",
        "stderr_path": "/out/j.e",
        "working_dir": "/work",
        "resources": resources,
    }
    return Attempt(**(values | changes))


def options_of(
    resources: Resources, allocation: AllocationContext = ALLOCATION, *, packs: bool = True
) -> dict[str, str]:
    words = srun_command("srun", attempt(resources), allocation, "name", ["-c", "true"], packs=packs)
    assert words[words.index("/bin/sh") :][-2:] == ["-c", "true"]
    options = [word.partition("=") for word in words[1 : words.index("/bin/sh")]]
    return {name: value for name, _, value in options}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            Resources(2, 150 << 20, 0, 1, 60.0),
            {"--cpus-per-task": "2", "--mem": "150", "--gres": "none", "--time": "1", "--nodes": "1"},
        ),
        (
            Resources(1, (150 << 20) + 1, 2, 3, 61.0),
            {"--mem": "151", "--gres": "gpu:2", "--time": "2", "--ntasks": "3"},
        ),
        (Resources(1, 1 << 20, 0, 1, None), {"--mem": "0", "--time": None}),
        (Resources(1, 1, 0, 1, 0.0), {"--mem": "1", "--time": "1"}),
    ],
)
def test_a_step_requests_the_resources_of_its_job(resources: Resources, expected: dict[str, str | None]) -> None:
    """In Slurm's units, rounded up; a job without requirements has no memory limit."""
    options = options_of(resources)
    assert {name: options.get(name) for name in expected} == expected
    assert "--exact" in options
    assert "--overlap" not in options
    assert options["--export"] == "ALL,SLURM_OVERLAP=1"  # for the steps of the job, not for its own
    assert (options["--output"], options["--job-name"]) == ("/out/100%%.o", "name")


def test_output_goes_where_the_attempt_says() -> None:
    """Where both streams have one file, the task itself joins them: srun would write them in an order of its own."""

    def words(**paths: str) -> list[str]:
        return srun_command("srun", attempt(Resources(), **paths), ALLOCATION, "name", ["-c", "true"], packs=True)

    one = words(stderr_path="/out/100%.o")
    assert [word for word in one if word.startswith(("--output", "--error"))] == [
        "--output=/out/100%%.o",
        "--error=/out/100%%.o",
    ]
    assert one[one.index("-c") + 1].startswith("exec 2>&1; cd ")
    none = words(stdout_path=os.devnull, stderr_path=os.devnull)
    assert {"--output=/dev/null", "--error=/dev/null"} <= set(none)
    assert words()[words().index("-c") + 1].startswith("cd ")


def test_attempts_that_are_only_counted_share_everything() -> None:
    """With a queue depth, requirements do not limit which jobs run."""
    options = options_of(Resources(64, 1 << 50, 8, 1, 60.0), packs=False)
    assert options["--cpus-per-task"] == "4"
    assert options["--mem"] == "0"
    assert "--overlap" in options
    assert "--gres" not in options


def test_a_runner_of_one_node_keeps_to_it() -> None:
    assert options_of(Resources(), AllocationContext(42, node="n3"))["--nodelist"] == "n3"
    assert "--nodelist" not in options_of(Resources())


def test_names_of_steps_identify_the_runner() -> None:
    assert step_name(CONTEXT, AttemptKey(7, 1), "n0_p9") == "torc_wf3_j7_r2_a1_n0_p9"


def test_misleading_variables_are_removed() -> None:
    """Those that act as options of srun, describe the runner's own step, or list GPUs of another step."""
    inherited = {
        "PATH": "/bin",
        "SLURM_JOB_ID": "42",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_JOB_PARTITION": "short",
        "SLURM_MEM_PER_NODE": "100",
        "SLURM_MEM_PER_CPU": "100",
        "SLURM_CPUS_PER_TASK": "4",
        "SLURM_STEP_ID": "3",
        "SLURM_EXPORT_ENV": "NONE",
        "SLURM_OVERLAP": "1",
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
        "SLURM_JOB_NAME": "worker",
        "SBATCH_EXPORT": "NONE",
        "SLURMD_NODENAME": "n1",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    kept = step_environment(inherited, {"TORC_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "1"})
    assert set(kept) == {"PATH", "SLURM_JOB_ID", "SLURM_CONF", "SLURM_JOB_PARTITION", "TORC_JOB_ID"}


BATCH = {
    "SLURM_JOB_ID": "42",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_CPUS_PER_NODE": "4(x2)",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_MEM_PER_NODE": "800",
    "SLURM_NODEID": "0",
    "SLURMD_NODENAME": "n1",
    "SLURM_JOB_NODELIST": "n[1-2]",
}
RECORD = parse_record(
    "JobId=42 JobName=w UserId=u(1) EndTime=2026-11-21T15:27:06 NumNodes=2 "
    "TRES=cpu=8,mem=1600M,node=2,billing=8,gres/gpu=4,gres/gpu:a100=4 Comment=TRES=x"
)


@pytest.mark.parametrize(
    ("changes", "record", "expected"),
    [
        ({}, RECORD, {"nodes": 2, "cpus": 4, "memory_bytes": 800 << 20, "gpus": 2, "node": None}),
        ({}, {}, {"nodes": 2, "gpus": 0, "ends_at": None}),
        ({"SLURM_MEM_PER_NODE": "", "SLURM_MEM_PER_CPU": "100"}, {}, {"memory_bytes": 400 << 20}),
        ({"SLURM_MEM_PER_NODE": "0"}, RECORD, {"memory_bytes": 800 << 20}),
        ({"SLURM_STEP_ID": "0", "SLURM_MEM_PER_NODE": "10", "SLURM_NODEID": "1", "SLURMD_NODENAME": "n2"}, RECORD,
         {"nodes": 1, "node": "n2", "node_index": 1, "memory_bytes": 800 << 20, "gpus": 2}),
        ({"SLURM_STEP_ID": "4294967290"}, RECORD, {"nodes": 2, "node": None}),
        ({"SLURM_JOB_CPUS_PER_NODE": "4,2"}, RECORD, {"cpus": 2}),
        ({"SLURM_JOB_CPUS_PER_NODE": "4,2", "SLURM_STEP_ID": "1"}, RECORD, {"cpus": 4}),
        ({"SLURM_JOB_GPUS": "0,1,2"}, {}, {"gpus": 3}),
        ({"SLURM_JOB_END_TIME": "1800000000"}, RECORD, {"ends_at": 1800000000.0}),
    ],
)  # fmt: skip
def test_the_allocation_context(changes: dict[str, str], record: dict[str, str], expected: dict[str, Any]) -> None:
    """In a batch script, in a step of its own node, in an interactive shell."""
    allocation = allocation_context_of(BATCH | changes, record)
    assert {name: getattr(allocation, name) for name in expected} == expected


def test_the_launch_site_has_torcs_names() -> None:
    site = allocation_context_of(BATCH, RECORD).launch_site(CONTEXT, 99)
    assert (site.kind, site.allocation_id) == ("slurm", "42")
    assert site.facts["slurm_job_id"] == 42
    assert site.log_name == "job_runner_slurm_wf3_sl42_n0_pid99.log"
    assert site.gpu_names == ("0", "1", "2", "3")


@pytest.mark.parametrize(("variables", "inside"), [({}, False), ({"SLURM_JOB_ID": ""}, False), (BATCH, True)])
def test_a_job_id_means_being_inside(variables: dict[str, str], inside: bool) -> None:
    assert inside_allocation(variables) is inside


@given(st.dictionaries(st.sampled_from([*BATCH, "SLURM_STEP_ID", "SLURM_JOB_GPUS"]), st.text(max_size=12)), st.text())
def test_any_environment(changes: dict[str, str], record: str) -> None:
    """Unusual values in Slurm's variables raise no error."""
    allocation = allocation_context_of({**BATCH, **changes, "SLURM_JOB_ID": "1"}, parse_record(record))
    assert allocation.cpus >= 0
    assert allocation.nodes >= 0
