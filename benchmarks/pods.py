"""Measure ``torc run --executor k8s`` against bare pods on the same cluster, and print the ratio.

Run it with the Python of the environment that ``torc`` and ``torc-k8s`` are installed in, with the kubeconfig, context
and namespace that ``kubectl`` would use; the account needs the rights of ``torc k8s check``. The yardstick creates pods
that run ``true`` and have no volumes, in parallel requests, and waits for the end of the last one; it is measured
before and after torc.
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import tempfile
import time
from pathlib import Path

from bench import Row, render, run_torc
from specs import independent
from torc_k8s.cluster import Cluster, ClusterAddress, PodWatch

REQUESTS = 16
"""How many pods are created at the same time."""
SETTLE_S = 5.0
"""Pause after a measurement, in which the node removes the last cgroups and network interfaces."""


async def bare_pods_s(count: int, image: str) -> float:
    """Return the seconds from the first request to the end of the last of so many pods."""
    cluster = await Cluster.open(ClusterAddress())
    label = f"bench-{secrets.token_hex(4)}"
    ended: set[str] = set()
    done = asyncio.Event()

    def on_pod(pod: dict[str, object], is_deleted: bool) -> None:
        metadata, status = pod["metadata"], pod["status"]
        if isinstance(status, dict) and isinstance(metadata, dict) and status.get("phase") in {"Succeeded", "Failed"}:
            ended.add(str(metadata["name"]))
            if len(ended) == count:
                done.set()

    def body(number: int) -> dict[str, object]:
        container = {"name": "main", "image": image, "command": ["true"]}
        spec = {"restartPolicy": "Never", "containers": [container], "enableServiceLinks": False}
        spec |= {"automountServiceAccountToken": False}
        return {"metadata": {"name": f"{label}-{number}", "labels": {"bench": label}}, "spec": spec}

    async def create(numbers: list[int]) -> None:
        for number in numbers:
            await cluster.create("pods", body(number))

    watch = PodWatch(cluster, f"bench={label}", on_pod, lambda names: None, lambda trouble: None)
    watching = asyncio.create_task(watch.run())
    try:
        begin = time.perf_counter()
        numbers = list(range(count))
        await asyncio.gather(*(create(numbers[first::REQUESTS]) for first in range(REQUESTS)))
        await done.wait()
        return time.perf_counter() - begin
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        await cluster.delete_all("pods", labels=f"bench={label}")
        await settled(cluster, f"bench={label}")
        await cluster.close()


async def settled(cluster: Cluster, labels: str) -> None:
    """Wait until the node has removed these pods, so that this work does not burden the next measurement.

    A deletion without a grace period would remove them from the API before the node has done so.
    """
    while (await cluster.list("pods", labels=labels))[0]:
        await asyncio.sleep(0.5)
    await asyncio.sleep(SETTLE_S)


def measure(base: Path, count: int, image: str) -> Row:
    """Run as many jobs as bare pods, which are measured before and after."""
    before = asyncio.run(bare_pods_s(count, image))
    whole, executing = run_torc(base, independent(base, count, "true"), "--executor", "k8s", "--image", image)
    time.sleep(SETTLE_S + count / 10)  # torc has removed its pods without waiting for the node
    after = asyncio.run(bare_pods_s(count, image))
    return Row(f"{count} pods of `true`", (before + after) / 2, whole, executing)


def main() -> None:
    """Measure, and print the table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image", help="image of the pods, which has a shell and the program true")
    parser.add_argument("--count", type=int, default=200, help="pods in each measurement")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("KUBECONFIG", str(Path.home() / ".kube" / "config"))  # torc runs with another HOME
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as folder:
        print(render([measure(Path(folder), options.count, options.image) for _ in range(options.rounds)]))


if __name__ == "__main__":
    main()
