"""Reasons why batch jobs wait."""

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.allocations.batch_jobs import BatchJob
from torc_slurm.allocations.pending_reasons import (
    PERMANENT_REASONS,
    TEMPORARY_REASONS,
    pending_reason,
    pending_reasons_by_id,
)
from torc_slurm.calls.call_log import CallLog
from torc_slurm.calls.slurm_commands import SlurmCommands

from torc_framework.api import PendingReason


@pytest.mark.parametrize(
    "printed",
    [
        *PERMANENT_REASONS,
        "AssocMaxWallDurationPerJobLimit",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxNodePerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSMaxCpuMinutesPerJobLimit",
        "QOSMaxMemoryPerNode",
        "QOSMaxCpuPerNode",
        "QOSMinCpuNotSatisfied",
        "QOSMinGRES",
    ],
)
def test_permanent_reasons(printed: str) -> None:
    """The request has to be changed."""
    reason = pending_reason(printed)
    assert reason.never_passes
    assert reason.text


@pytest.mark.parametrize(
    "printed",
    [
        *TEMPORARY_REASONS,
        "ReqNodeNotAvail, UnavailableNodes:n[1-3]",
        "ReqNodeNotAvail, May be reserved for other job",
        "AssocGrpCpuLimit",
        "AssocGrpCPUMinutesLimit",
        "AssocMaxJobsLimit",
        "QOSGrpNodeLimit",
        "QOSMaxJobsPerUserLimit",
        "QOSMaxCpuPerUserLimit",
        "QOSMaxGRESPerAccount",
        "MaxCpuPerAccount",
    ],
)
def test_temporary_reasons(printed: str) -> None:
    reason = pending_reason(printed)
    assert not reason.never_passes
    assert reason.text
    assert reason.code == printed


@given(st.text())
def test_any_reason(printed: str) -> None:
    """An unknown reason is reported in Slurm's spelling."""
    assert pending_reason(printed).code == printed
    assert pending_reason("AWordOfTomorrow") == PendingReason("AWordOfTomorrow")


@pytest.mark.parametrize(
    ("wanted", "limits", "never"),
    [
        ("3", "MaxNodes=UNLIMITED MinNodes=0 TotalNodes=1", True),
        ("3-3", "MaxNodes=2 MinNodes=0 TotalNodes=9", True),
        ("1", "MaxNodes=9 MinNodes=2 TotalNodes=9", True),
        ("3", "MaxNodes=UNLIMITED MinNodes=0 TotalNodes=3", False),
        ("x", "MaxNodes=1 TotalNodes=1", False),
        ("3", "", False),
    ],
)
def test_a_wrong_number_of_nodes_is_distinguished_from_nodes_that_are_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, limits: str, never: bool
) -> None:
    """Slurm has one code for both."""
    program = tmp_path / "scontrol"
    program.write_text(
        f'#!/bin/sh\ncase $3 in job) echo "Partition=gpu NumNodes={wanted}";; *) echo "{limits}";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    slurm = SlurmCommands("test", CallLog(tmp_path / "calls"))
    job = BatchJob("7", "PENDING", reason="PartitionNodeLimit")
    assert pending_reasons_by_id(slurm, [job])["7"].never_passes is never
    assert pending_reasons_by_id(slurm, [evolve(job, reason="Resources")]) == {"7": pending_reason("Resources")}
    assert pending_reasons_by_id(slurm, [evolve(job, state="RUNNING"), evolve(job, reason=None)]) == {}
