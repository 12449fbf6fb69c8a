"""Messages of srun and rows of accounting: recorded ones are parsed, unknown ones have no effect."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.accounting.step_rows import SACCT_FIELDS, StepRow, parse_step_rows
from torc_slurm.processes.instants import Instant
from torc_slurm.shared.slurm_times import parse_sacct_time
from torc_slurm.steps.observations import StepEnd, observe_step
from torc_slurm.steps.srun_messages import SrunMessages

from torc_framework.api import classify_exit

HEAD = """\
srun: defined options
srun: -------------------- --------------------
srun: (null)              : n1
srun: cpus-per-task       : 1
srun: jobid               : 4
srun: -------------------- --------------------
srun: end of defined options
srun: jobid 4: nodes(1):`n1', cpu counts: 4(x1)
"""
BEGUN = """\
srun: launch/slurm: launch_p_step_launch: CpuBindType=(null type)
srun: launching StepId=4.7 on host n1, 1 tasks: 0
srun: route/default: init: route default plugin loaded
srun: launch/slurm: _task_start: Node n1, 1 tasks started
"""
WAITS = "srun: Job 4 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
END = "srun: launch/slurm: _task_finish: Received task exit notification for 1 task of StepId=4.7 (status=0x{}).\n"


def heard(*texts: str) -> SrunMessages:
    messages = SrunMessages()
    for text in texts:
        messages.feed(text.encode())
    messages.feed(b"")
    return messages


@pytest.mark.parametrize(
    ("status", "code", "signal", "core"),
    [
        ("0000", 0, None, False),
        ("0d00", 13, None, False),
        ("8900", 137, None, False),
        ("ff00", 255, None, False),
        ("000b", None, 11, False),
        ("008b", None, 11, True),
        ("00fd", None, None, False),
    ],
)
def test_wait_statuses_are_exact(status: str, code: int | None, signal: int | None, core: bool) -> None:
    """The last is Slurm's mark for lack of memory, which is no signal."""
    messages = heard(HEAD, BEGUN, END.format(status))
    assert (messages.step_id, messages.code, messages.signal, messages.core_dumped) == ("4.7", code, signal, core)
    assert messages.out_of_memory == (status == "00fd")
    assert messages.started is not None
    assert messages.errors == []


def test_a_waiting_step_has_no_id() -> None:
    """A step has an id only once it exists."""
    waiting = heard(HEAD, WAITS)
    assert (waiting.step_id, waiting.started) == (None, None)
    running = heard(HEAD, WAITS, "srun: Step created for job 4\n", BEGUN)
    assert running.step_id == "4.7"


@pytest.mark.parametrize(
    ("printed", "error"),
    [
        (
            "srun: error: Unable to create step for job 4: Memory required by task is not available\n",
            "Unable to create step for job 4: Memory required by task is not available",
        ),
        (
            "srun: error: Could not open stdout file: No such file or directory",
            "Could not open stdout file: No such file or directory",
        ),
    ],
)
def test_refusals_are_kept_in_slurms_spelling(printed: str, error: str) -> None:
    messages = heard(HEAD, printed)
    assert (messages.step_id, messages.errors) == (None, [error])


def test_the_first_failure_of_several_tasks_decides() -> None:
    """The others were killed because of it."""
    messages = heard(BEGUN, END.format("0000"), END.format("0600"), END.format("0009"))
    assert (messages.code, messages.signal, len(messages.statuses)) == (6, None, 3)


@given(st.binary(max_size=400), st.integers(0, 400))
def test_any_messages_in_any_pieces(data: bytes, cut: int) -> None:
    """No data raises an error, and the pieces do not matter."""
    text = HEAD.encode() + data + b"\n" + BEGUN.encode() + END.format("0300").encode()
    whole, pieces = SrunMessages(), SrunMessages()
    whole.feed(text)
    pieces.feed(text[:cut])
    pieces.feed(text[cut:])
    for messages in (whole, pieces):
        messages.feed(b"")
    assert (whole.statuses, whole.last_lines, whole.step_id) == (pieces.statuses, pieces.last_lines, pieces.step_id)


def row(state: str, code: str, **more: str) -> StepRow:
    return StepRow(dict.fromkeys(SACCT_FIELDS, "") | {"JobID": "4.7", "State": state, "ExitCode": code, **more})


def end_of(messages: SrunMessages, srun_code: int | None = 0) -> StepEnd:
    return StepEnd("torc_wf1_j1_r1_a1_n0_p1", messages, srun_code, None, Instant.now())


NODE_LOST = "srun: error: Node failure on n3\nsrun: Force Terminated StepId=4.7\n"
KILLED = END.format("0009")


@pytest.mark.parametrize(
    ("said", "srun_code", "state", "pair", "expected"),
    [
        (END.format("0000"), 0, "COMPLETED", "0:0", ("success", 0, None)),
        (END.format("8900"), 137, "FAILED", "9:0", ("user_error", 137, None)),
        (END.format("000b"), 139, "CANCELLED", "0:11", ("signaled", None, 11)),
        (END.format("00fd"), 1, "OUT_OF_MEMORY", "0:125", ("oom", None, None)),
        (END.format("000f"), 143, "TIMEOUT", "0:15", ("timeout", None, 15)),
        (END.format("0000"), 0, "TIMEOUT", "0:0", ("timeout", 0, None)),
        (KILLED, 137, "CANCELLED by 1001", "0:9", ("canceled", None, 9)),
        (NODE_LOST, 0, "CANCELLED", "", ("node_failure", None, None)),
        (KILLED, 137, "PREEMPTED", "0:9", ("preempted", None, 9)),
        (END.format("0300"), 3, "SOMETHING_NEW", "3:0", ("user_error", 3, None)),
        ("", 137, "FAILED", "9:0", ("user_error", 137, None)),
        ("", 9, "FAILED", "9:0", ("user_error", 9, None)),
        ("", 128, "FAILED", "0:0", ("user_error", 128, None)),
        ("", 139, "CANCELLED", "0:11", ("signaled", None, 11)),
        ("", 1, "OUT_OF_MEMORY", "0:125", ("oom", None, None)),
        (END.format("00fd") + "srun: error: n1: task 0: Out Of Memory\n", 1, None, "", ("oom", None, None)),
        (NODE_LOST, 0, None, "", ("node_failure", None, None)),
        (END.format("0500"), 5, None, "", ("user_error", 5, None)),
        ("", 5, None, "", ("user_error", 5, None)),
    ],
)
def test_ends(
    said: str, srun_code: int, state: str | None, pair: str, expected: tuple[str, int | None, int | None]
) -> None:
    """As srun and accounting describe them together; accounting has no row for the last ones."""
    found = row(state, pair) if state is not None else None
    seen = observe_step("slurm", end_of(heard(HEAD, BEGUN, said), srun_code), found, "it is ill")
    assert (classify_exit(seen).exit_class, seen.exit_code, seen.signal) == expected
    assert (seen.raw["accounting"].get("missing") == "it is ill") == (state is None)
    assert seen.raw["step"] == "4.7"


def test_rows_are_parsed_with_their_measures() -> None:
    line = (
        "4.7|name|COMPLETED|0:0||n1|2026-11-21T15:22:06|2026-11-21T15:22:07|00:00:01|00:00.101|208416K|0|cpu=1,mem=100M"
    )
    printed = f"4|alloc|RUNNING|0:0\n{line}\n4.8|name|RUNNING|0:0|||2026-11-21T15:22:06|Unknown|||||\n"
    rows = parse_step_rows(printed)
    assert {step: each.is_final for step, each in rows.items()} == {"4.7": True, "4.8": False}
    assert (rows["4.7"].peak_memory_bytes, rows["4.7"].cpu_time_s) == (208416 * 1024, 0.101)
    assert rows["4.8"].time("End") is None
    assert (rows["4.7"].time("End") or 0) - (rows["4.7"].time("Start") or 0) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00.198", 0.198), ("01:02", 62.0), ("03:00:01", 10801.0), ("1-00:00:02", 86402.0), ("", None), ("x", None)],
)
def test_times_of_accounting(text: str, seconds: float | None) -> None:
    assert parse_sacct_time(text) == seconds


@pytest.mark.parametrize(("text", "size"), [("0", None), ("", None), ("1.5G", 1 << 30), ("12K", 12288), ("?", None)])
def test_memory_that_was_not_measured_is_not_0(text: str, size: int | None) -> None:
    assert row("COMPLETED", "0:0", MaxRSS=text).peak_memory_bytes == size


@given(st.dictionaries(st.sampled_from(SACCT_FIELDS), st.text(max_size=20)), st.integers(-1, 255))
def test_any_row(values: dict[str, Any], code: int) -> None:
    """Every row gives an observation."""
    found = StepRow(dict.fromkeys(SACCT_FIELDS, "") | values)
    seen = observe_step("slurm", end_of(heard(BEGUN), None if code < 0 else code), found)
    assert classify_exit(seen).exit_class
    assert os.fsencode(seen.raw["step"]) == b"4.7"
