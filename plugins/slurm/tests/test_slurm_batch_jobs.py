"""Parsing of ``squeue`` and ``sacct``, with recorded output of Slurm 22.05.8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.allocations.batch_jobs import BatchJob, parse_sacct, parse_squeue
from torc_slurm.cluster.hostlist import expand_hostlist
from torc_slurm.commands.sacct import parse_summary_rows
from torc_slurm.shared.slurm_times import parse_sacct_time

QUEUE = """159|159|4|CANCELLED|None||nm_x
162|159|3|PENDING|Resources||nm_x
160|159|1|RUNNING|None|n[1-2]|nm_x
21|21|N/A|COMPLETING|None|small1|a|b
squeue: a warning
"""
BOOKS = """160|hpcuser|RUNNING|0:0|0:0|None|n1
161|hpcuser|CANCELLED by 1001|0:15|0:0|None|None assigned
162|other|NODE_FAIL|0:0|0:0|NodeDown|n[1-3]
160|hpcuser|OUT_OF_MEMORY|0:125|0:125|None|n1
160.batch|hpcuser|FAILED|1:0||None|n1
"""


def test_squeue_is_parsed() -> None:
    """Tasks of arrays have their own ids; names may contain any character."""
    jobs = {job.id: job for job in parse_squeue(QUEUE)}
    assert set(jobs) == {"159", "162", "160", "21"}
    assert (jobs["160"].task, jobs["160"].nodes, jobs["160"].array_id) == (1, ("n1", "n2"), "159")
    assert (jobs["21"].task, jobs["21"].name) == (None, "a|b")
    assert [jobs[id_].is_over for id_ in ("159", "162", "160", "21")] == [True, False, False, False]
    assert jobs["162"].reason == "Resources"


def test_sacct_is_parsed() -> None:
    """The newest row of a requeued job counts; states may have several words."""
    jobs = {job.id: job for job in parse_sacct(BOOKS)}
    assert set(jobs) == {"160", "161", "162"}
    assert (jobs["160"].state, jobs["160"].codes["DerivedExitCode"]) == ("OUT_OF_MEMORY", "0:125")
    assert (jobs["161"].is_over, jobs["161"].nodes) == (True, ())
    ending = jobs["162"].ending()
    assert (ending.state, ending.reason, ending.nodes) == ("NODE_FAIL", "NodeDown", ("n1", "n2", "n3"))


@pytest.mark.parametrize("state", ["REQUEUE_HOLD", "SIGNALING", "A_STATE_OF_TOMORROW", "", "RESIZING"])
def test_a_job_in_an_unknown_state_is_not_over(state: str) -> None:
    """Only the states of Slurm's manual end a job."""
    assert not BatchJob("1", state).is_over


@given(st.text())
def test_no_output_raises(text: str) -> None:
    """Lines of another form are skipped."""
    list(parse_squeue(text))
    list(parse_sacct(text))
    list(parse_summary_rows(text))
    expand_hostlist(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[01-02,7],login1", ["n01", "n02", "n7", "login1"]),
        ("r[1-2]n[3,4]x", ["r1n3x", "r1n4x", "r2n3x", "r2n4x"]),
        ("", []),
    ],
)
def test_hostlists_are_expanded(text: str, names: list[str]) -> None:
    """As ``scontrol show hostnames`` does."""
    assert expand_hostlist(text) == names


def test_steps_are_rows() -> None:
    """Codes without a signal are plain; times and memory are numbers."""
    text = "409|w|RUNNING|0:0|7||00:00.012|n1\n409.0|step|OUT_OF_MEMORY|0:125|61|208416K|1-01:00:02|n1\nnonsense\n"
    job, step = parse_summary_rows(text)
    assert (job["slurm_job_id"], job["step_id"], job["exit_code"], job["max_rss_bytes"]) == ("409", None, "0", None)
    assert (step["step_id"], step["exit_code"], step["max_rss_bytes"]) == ("0", "0:125", 208416 * 1024)
    assert step["cpu_time_s"] == 90_002


@pytest.mark.parametrize(("text", "seconds"), [("00:00.012", 0.012), ("01:02:03", 3723), ("", None), ("x", None)])
def test_cpu_times(text: str, seconds: float | None) -> None:
    """In the forms of sacct's manual page."""
    assert parse_sacct_time(text) == seconds
