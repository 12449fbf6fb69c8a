"""A second runner of a workflow whose jobs another has claimed: the time until it has one of them."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from torc_framework.client import TorcClient
from torc_framework.models.exchange import ExchangeRequest
from torc_framework.models.records import ComputeNodeRecord

WAIT_S = 20.0
"""Longest wait of the second runner for its first job."""
POLL_S = 0.01
STARTED_AT = "2000-01-01T00:00:00Z"


def seconds_until_first_job(
    url: str, workflow_id: int, first_runner: list[Any], cwd: Path, env: dict[str, str]
) -> float:
    """Start a runner, wait until it holds all jobs, and ask for one in the name of another; return how long that took.

    Raises:
        RuntimeError: the first runner never held all jobs that were left, or the second one got none.
    """
    client = TorcClient(url)
    output = subprocess.DEVNULL
    with subprocess.Popen(first_runner, cwd=cwd, env=env, stdin=output, stdout=output) as runner:
        while not (counts := client.job_counts(workflow_id).counts).get("pending") or counts.get("ready"):
            if runner.poll() is not None:
                raise RuntimeError("the first runner never held all jobs that were left")
            time.sleep(POLL_S)
        node = client.create(
            ComputeNodeRecord(
                workflow_id=workflow_id,
                hostname=socket.gethostname(),
                pid=runner.pid,
                start_time=STARTED_AT,
                is_active=True,
                num_cpus=1,
                memory_gb=1.0,
                num_gpus=0,
                num_nodes=1,
                compute_node_type="local",
            )
        )
        request = ExchangeRequest(node.id or 0, run_id=1, slots=1, wait_s=WAIT_S)
        begin = time.perf_counter()
        reply = client.exchange(workflow_id, request)
        waited_s = time.perf_counter() - begin
        if not reply.jobs:
            raise RuntimeError("the second runner got no job")
        request.slots, request.wait_s, request.released = 0, 0.0, [job.id for job in reply.jobs]
        client.exchange(workflow_id, request)
    client.close()
    return waited_s
