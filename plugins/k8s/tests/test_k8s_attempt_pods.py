"""Attempts and their pods, with a stand-in for the cluster."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from torc_k8s.cluster import Cluster, ClusterError
from torc_k8s.executor import runner_pods, scope_services
from torc_k8s.executor.adoption import adopt_pods
from torc_k8s.executor.attempt_pods import AttemptPods
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.executor.runner_pods import RunnerPods
from torc_k8s.pods.names import STDERR, STDOUT, pod_labels, pod_name
from torc_k8s.pods.options import K8sOptions

from torc_framework.api import AttemptEnded, AttemptKey, AttemptStarted, LauncherEvent, RunnerContext

SCOPE = "0123456789"
BEGAN, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"


def pod(name: str, **state: Any) -> dict[str, Any]:
    """Return a pod whose main container has a state."""
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]} if state else {}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"nodeName": "n"}, "status": status}


def running(name: str) -> dict[str, Any]:
    return pod(name, running={"startedAt": BEGAN})


def ended(name: str) -> dict[str, Any]:
    return pod(name, terminated={"startedAt": BEGAN, "finishedAt": ENDED, "exitCode": 0, "reason": "Completed"})


class StandIn:
    """A cluster that keeps pods, and whose logs have one record each; the log of a running pod does not end."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.namespace, self.is_closed, self.answers = "default", False, asyncio.Event()
        self.answers.set()
        self.deletions: list[str] = []

    async def list(self, _kind: str, **_how: Any) -> tuple[list[dict[str, Any]], str]:
        await self.answers.wait()
        return list(self.pods.values()), "1"

    async def watch(self, _kind: str, **_how: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        await asyncio.Event().wait()
        yield "BOOKMARK", {}

    async def log(self, name: str, _container: str, **_how: Any) -> AsyncGenerator[bytes]:
        size = len(name) + 1
        yield f"@{name} start 1.0\n@{name} o 0 {size} t\n{name}\n\n".encode()
        while "running" in self.pods[name]["status"]["containerStatuses"][0]["state"]:
            await asyncio.sleep(0.01)
        yield f"@{name} end {size} 0 0\n".encode()

    async def patch(self, _kind: str, name: str, _body: dict[str, Any]) -> dict[str, Any]:
        if name not in self.pods:
            raise ClusterError("it does not exist", status=404)
        return self.pods[name]

    async def delete(self, _kind: str, name: str, **_how: Any) -> bool:
        self.deletions.append(name)
        return self.pods.pop(name, None) is not None

    async def close(self) -> None:
        self.is_closed = True


class AttemptPodsBench:
    """The pods of one runner.

    Args:
        folder: Folder for logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster = folder, StandIn()
        self.events: list[LauncherEvent] = []
        context = RunnerContext(1, 1, str(folder), str(folder), "http://localhost")
        self.pods = RunnerPods(cast("Cluster", self.cluster), SCOPE, K8sOptions(), context, self.events.extend)

    def adopt(self, number: int, body: dict[str, Any] | None = None) -> AttemptPods:
        """Follow a pod that exists, ``pod-N``; it runs unless it is given otherwise."""
        name = f"pod-{number}"
        logs = LogPaths(str(self.folder / f"{name}.o"), str(self.folder / f"{name}.e"))
        attempt = AttemptPods(AttemptKey(number, 1), self.pods.services, self.pods.followed, logs)
        self.show(body or running(name))
        attempt.add(name).exists(self.cluster.pods[name])
        self.pods.run(attempt)
        return attempt

    def show(self, body: dict[str, Any]) -> None:
        """Have the cluster report a state of a pod."""
        name = body["metadata"]["name"]
        self.cluster.pods[name] = body
        if (member := self.pods.followed.get(name)) is not None:
            member.update(body, is_gone=False)

    def end_of(self, number: int) -> AttemptEnded | None:
        """Return the reported end of an attempt."""
        ends = (event for event in self.events if isinstance(event, AttemptEnded))
        return next((end for end in ends if end.key.job_id == number), None)

    async def until_ended(self, number: int) -> AttemptEnded:
        """Wait for the end of an attempt."""
        async with asyncio.timeout(20):
            while (end := self.end_of(number)) is None:
                await asyncio.sleep(0.01)
        return end

    def output(self, number: int) -> str:
        path = self.folder / f"pod-{number}.o"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def scene_of(tmp_path: Path) -> Any:
    """Return a function that makes the scene within the event loop."""
    return lambda: AttemptPodsBench(tmp_path)


def test_an_ended_pod_is_read_while_others_hold_all_places(scene_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of pods that run are read by a bounded number of readers; that of an ended pod must not wait for them."""
    monkeypatch.setattr(scope_services, "READERS_AT_ONCE", 1)

    async def play() -> None:
        scene = scene_of()
        scene.adopt(1)
        await asyncio.sleep(0.05)
        scene.adopt(2)
        scene.show(ended("pod-2"))
        end = await scene.until_ended(2)
        assert "log_incomplete" not in end.observation.raw
        assert scene.output(2) == "pod-2\n"
        await scene.pods.close()

    asyncio.run(play())


@pytest.mark.parametrize("state", [{}, {"waiting": {"reason": "ContainerCreating"}}])
def test_a_pod_that_waits_has_not_started(scene_of: Any, state: dict[str, Any]) -> None:
    """Neither one without a node nor one whose container is being made is running."""

    async def play() -> None:
        scene = scene_of()
        scene.adopt(1, pod("pod-1", **state))
        assert not any(isinstance(event, AttemptStarted) for event in scene.events)
        scene.show(running("pod-1"))
        assert isinstance(scene.events[-1], AttemptStarted)
        scene.show(ended("pod-1"))
        await scene.until_ended(1)
        await scene.pods.close()

    asyncio.run(play())


def test_running_pods_are_read_in_turns(scene_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_services, "READERS_AT_ONCE", 1)
    monkeypatch.setattr("torc_k8s.executor.member_pod.READING_TURN_S", 0.1)

    async def play() -> None:
        scene = scene_of()
        for number in (1, 2, 3):
            scene.adopt(number)
        async with asyncio.timeout(20):
            while not all(scene.output(number) for number in (1, 2, 3)):
                await asyncio.sleep(0.01)
        for number in (1, 2, 3):
            scene.show(ended(f"pod-{number}"))
            assert "log_incomplete" not in (await scene.until_ended(number)).observation.raw
            assert scene.output(number) == f"pod-{number}\n"
        await scene.pods.close()

    asyncio.run(play())


def test_an_error_at_one_attempt_does_not_end_the_limits_of_others(
    scene_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_pods, "TICK_S", 0.01)

    async def play() -> None:
        scene, seen = scene_of(), list[int]()

        def tick(attempt: AttemptPods, _now: float) -> None:
            seen.append(attempt.key.job_id)
            if attempt.key.job_id == 1:
                raise RuntimeError("planted")

        monkeypatch.setattr(AttemptPods, "tick", tick)
        scene.adopt(1)
        scene.adopt(2)
        scene.pods.follow()
        async with asyncio.timeout(20):
            while seen.count(2) < 3:
                await asyncio.sleep(0.01)
        await scene.pods.close()

    asyncio.run(play())


def test_an_attempt_that_fails_in_the_executor_leaves_no_pod_that_runs(
    scene_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may begin another attempt of a job whose attempt is lost."""
    monkeypatch.setattr("torc_k8s.executor.member_pod.observe", lambda *_, **__: 1 / 0)

    async def play() -> None:
        scene = scene_of()
        left: list[bool] = []
        report = scene.pods.services.report

        def note(events: list[LauncherEvent]) -> None:
            left.extend("pod-1" in scene.cluster.pods for event in events if isinstance(event, AttemptEnded))
            report(events)

        scene.pods.services.report = note
        scene.adopt(1)
        assert isinstance(scene.events[0], AttemptStarted)
        scene.show(ended("pod-1"))
        end = await scene.until_ended(1)
        assert end.observation.lost
        assert "ZeroDivisionError" in end.observation.raw["executor_error"]
        assert left == [False]
        await scene.pods.close()

    asyncio.run(play())


def test_an_interrupted_end_closes_the_connection(scene_of: Any) -> None:
    """As Ctrl-C interrupts it."""

    async def play() -> None:
        scene = scene_of()
        scene.adopt(1)
        ending = asyncio.create_task(scene.pods.finish())
        await asyncio.sleep(0.05)
        ending.cancel()
        await asyncio.wait({ending})
        assert scene.cluster.is_closed

    asyncio.run(play())


def found_pod(scene: Any, number: int, stdout: str) -> AttemptKey:
    """Have the cluster show a pod of a dead runner, which runs; return its attempt."""
    key = AttemptKey(number, 1)
    body = running(pod_name(SCOPE, key))
    body["metadata"]["labels"] = pod_labels(SCOPE, 1, key)
    body["metadata"]["annotations"] = {STDOUT: stdout, STDERR: f"{scene.folder}/{number}.e"}
    scene.show(body)
    return key


def test_a_stop_while_the_pods_are_looked_for_is_not_lost(scene_of: Any) -> None:
    """A cluster that does not answer for long counts its attempts as adopted before they are found."""

    async def play() -> None:
        scene = scene_of()
        key = found_pod(scene, 1, f"{scene.folder}/1.o")
        scene.cluster.answers.clear()
        assert (await adopt_pods(scene.pods, [key], 0.05)).adopted == (key,)
        scene.pods.stop([key], force=False)
        scene.pods.stop([key], force=True)
        scene.cluster.answers.set()
        async with asyncio.timeout(20):
            while scene.cluster.deletions != [pod_name(SCOPE, key)]:
                await asyncio.sleep(0.01)
        await scene.pods.close()

    asyncio.run(play())


@pytest.mark.parametrize("path", ["../outside.o", "/{0}/../outside.o", "", "/{0}"])
def test_a_pod_does_not_choose_the_files_of_this_machine(tmp_path: Path, path: str) -> None:
    """Every account that may change pods can change its annotations."""

    async def play() -> None:
        folder = tmp_path / "out"
        folder.mkdir()
        (tmp_path / "outside.o").write_text("mine")
        scene = AttemptPodsBench(folder)
        key = found_pod(scene, 1, path.format(folder) if path != "/{0}" else str(tmp_path / "outside.o"))
        good = found_pod(scene, 2, f"{folder}/2.o")
        await adopt_pods(scene.pods, [key, good], 20)
        for each in (key, good):
            body = scene.cluster.pods[pod_name(SCOPE, each)]
            body["status"] = ended("x")["status"]
            scene.show(body)
            await scene.until_ended(each.job_id)
        assert (tmp_path / "outside.o").read_text() == "mine"
        assert sorted(each.name for each in folder.iterdir()) == ["1.e", "2.e", "2.o"]
        await scene.pods.close()

    asyncio.run(play())
