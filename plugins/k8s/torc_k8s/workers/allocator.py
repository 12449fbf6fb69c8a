"""The allocator of executor ``k8s``: pods in which runners of torc work, each for many jobs."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from attrs import Factory, define

from torc_framework.api import (
    Allocation,
    AllocationEnding,
    AllocationError,
    AllocationRequest,
    AllocationUnknownError,
    Allocator,
    ConfigError,
    HpcProfile,
    PendingReason,
    RunnerStart,
)
from torc_k8s.cluster import Cluster, ClusterAddress, ClusterError, ClusterUnreachable, loop_thread
from torc_k8s.cluster.login import is_configured
from torc_k8s.pods.facts import PodEvent, PodFacts
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.template import load_template
from torc_k8s.workers.worker_options import WorkerShape, refuse_loopback
from torc_k8s.workers.worker_pods import REQUEST, WorkerPlan, request_label, selector
from torc_k8s.workers.worker_states import ending_of, is_alive, is_kept, never_starts, pending_reason

LOG: Final = logging.getLogger(__name__)
PATIENCE_S: Final = 20.0
"""How long a request is repeated while the cluster does not answer; usually a person waits for it."""
AT_ONCE: Final = 8

T = TypeVar("T")


@define
class _WorkerView:
    """The worker pods that the last question showed, and how those ended that this allocator gave up."""

    pods: Mapping[str, PodFacts] = Factory(dict)
    given_up: dict[str, AllocationEnding] = Factory(dict)


class WorkerAllocator(Allocator):
    """Starts worker pods. The id of an allocation is the name of its pod."""

    options: K8sOptions

    @property
    def _workers_address(self) -> ClusterAddress:
        return ClusterAddress(self.options.kubeconfig, self.options.context, self.options.namespace)

    @cached_property
    def _view(self) -> _WorkerView:
        return _WorkerView()

    def runner_start(self) -> RunnerStart:
        """Return how the runner of a worker pod is started: with the image's torc and the executor ``local``."""
        return WorkerShape.of(self.options).runner_start()

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Create the pods one after the other, each with a Secret of its own if the runner needs variables.

        The names of the pods follow from that of the request, so that a repeated creation makes no second pod.

        Raises:
            AllocationUnknownError: the cluster did not answer; it may have created a pod, which `find` then shows.
            AllocationError: no pod was created: an option is wrong, pods cannot reach the server, the cluster refused.
        """
        shape = WorkerShape.of(self.options)
        if url := shape.server_url or request.environment.get("TORC_API_URL", ""):
            refuse_loopback(url)
        try:
            template = load_template(self.options.pod_template) if self.options.pod_template else None
            options = self.options.pod_options()
        except ConfigError as error:
            raise AllocationError(str(error)) from None

        async def create(cluster: Cluster) -> list[Allocation]:
            plan = WorkerPlan(self.context.workflow_id, cluster.namespace, request, shape, options, template)
            await self._remove_ended(cluster, [*(await self._listed(cluster)).values()])
            return [Allocation(name, self.name) for name in await _create(cluster, plan)]

        return self._ask(create)

    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Return the worker pods that wait or run, by the names of their requests, with one list of pods."""
        if not names:
            return {}
        labels = {request_label(name): name for name in names}
        found: dict[str, list[Allocation]] = {name: [] for name in names}

        async def look(cluster: Cluster) -> None:
            pods, _ = await cluster.list("pods", labels=selector(self.context.workflow_id), patience_s=PATIENCE_S)
            for pod in pods:
                facts, name = PodFacts.of(pod), labels.get(_request_of(pod))
                if name is not None and is_alive(facts, self.options):
                    found[name].append(Allocation(facts.name, self.name))

        self._ask(look)
        return found

    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Return by id whether a worker waits or runs, with one list of pods.

        A worker that cannot start, such as for a missing image, is deleted after the option ``start_limit_s``. One
        whose node has been silent for ``lost_after_s`` counts as ended.
        """
        if not allocations:
            return {}
        view, ids = self._view, [each.id for each in allocations]

        async def look(cluster: Cluster) -> None:
            view.pods = await self._listed(cluster)
            for name in ids:
                facts = view.pods.get(name)
                if facts is not None and (why := never_starts(facts, self.options)) is not None:
                    await cluster.delete("pods", name, uid=facts.uid, patience_s=PATIENCE_S)
                    view.given_up[name] = AllocationEnding(why.code, why.text)

        self._ask(look)
        there = {id_: view.pods[id_] for id_ in ids if id_ in view.pods and id_ not in view.given_up}
        return {id_: id_ in there and is_alive(there[id_], self.options) for id_ in ids}

    def pending_reasons(self, allocations: Sequence[Allocation]) -> Mapping[str, PendingReason]:
        """Return by id why workers wait, by the pods that the last question showed, and by their events."""
        if not allocations:
            return {}
        view, ids = self._view, {each.id for each in allocations}
        found: dict[str, PendingReason] = {}

        async def look(cluster: Cluster) -> None:
            if not ids <= view.pods.keys():
                view.pods = await self._listed(cluster)
            for name in sorted(ids & view.pods.keys()):
                reason = await _why_waiting(cluster, view.pods[name])
                if reason is not None:
                    found[name] = reason

        self._ask(look)
        return found

    def endings(self, allocations: Sequence[Allocation]) -> Mapping[str, AllocationEnding]:
        """Return by id how workers ended, and remove their pods unless the option ``keep_pods`` keeps them."""
        if not allocations:
            return {}
        view = self._view
        ids = {each.id for each in allocations}

        async def look(cluster: Cluster) -> None:
            if not ids <= view.pods.keys():
                view.pods = await self._listed(cluster)
            await self._remove_ended(cluster, [view.pods[name] for name in ids & view.pods.keys()])

        self._ask(look)
        seen = {name: view.pods[name] for name in ids & view.pods.keys()}
        told = {name: ending_of(facts) for name, facts in seen.items() if not is_alive(facts, self.options)}
        return {**told, **{name: view.given_up[name] for name in ids & view.given_up.keys()}}

    def release(self, allocations: Sequence[Allocation]) -> None:
        """Delete worker pods: SIGTERM lets their runners report what they stop. Unknown ones are ignored."""
        if not allocations:
            return

        async def remove(cluster: Cluster) -> None:
            limit = asyncio.Semaphore(AT_ONCE)

            async def delete(name: str) -> None:
                async with limit:
                    await cluster.delete("pods", name, patience_s=PATIENCE_S)

            await asyncio.gather(*(delete(each.id) for each in allocations))

        self._ask(remove)

    def has_cluster(self) -> bool:
        """Return whether a kubeconfig is named or exists, or this process runs in a pod with an account."""
        return is_configured(self._workers_address)

    def cluster_profile(self) -> HpcProfile:
        """Return the profile of the namespace: the largest pods that nodes, LimitRanges and quotas admit."""
        from torc_k8s.survey.cluster_survey import query_survey
        from torc_k8s.survey.profile import profile_of

        async def look(cluster: Cluster) -> HpcProfile:
            survey = await query_survey(cluster, self.options.pod_options())
            return profile_of(survey, urlsplit(cluster.url).hostname or cluster.url)

        return self._ask(look)

    # --- the cluster --------------------------------------------------------------------------------

    def _ask(self, question: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of the cluster.

        Raises:
            AllocationUnknownError: it did not answer in the middle of a request.
            AllocationError: it did not answer, or refused.
        """

        async def ask() -> T:
            cluster = await Cluster.open(self._workers_address, patience_s=PATIENCE_S)
            try:
                return await question(cluster)
            finally:
                await cluster.close()

        try:
            return loop_thread.run(ask())
        except (ClusterError, ConfigError) as error:
            raise AllocationError(str(error)) from error

    async def _listed(self, cluster: Cluster) -> dict[str, PodFacts]:
        """Return the worker pods of the workflow by name."""
        pods, _ = await cluster.list("pods", labels=selector(self.context.workflow_id), patience_s=PATIENCE_S)
        return {facts.name: facts for facts in map(PodFacts.of, pods)}

    async def _remove_ended(self, cluster: Cluster, pods: Sequence[PodFacts]) -> None:
        """Delete the pods that have ended, or whose nodes are lost, unless they are to be kept."""
        for facts in pods:
            if not is_kept(facts, self.options.keep_pods) and not is_alive(facts, self.options):
                await cluster.delete("pods", facts.name, uid=facts.uid, patience_s=PATIENCE_S)


async def _create(cluster: Cluster, plan: WorkerPlan) -> list[str]:
    """Create the pods of a request; return the names of those that were accepted, also if a later one was refused.

    Raises:
        AllocationUnknownError: the cluster did not answer whether it accepted one.
        AllocationError: it refused the first.
    """
    names: list[str] = []
    try:
        for number in range(1, plan.request.count + 1):
            pod = await _create_pod(cluster, plan.pod(number))
            if plan.request.environment:
                await _create_secret(cluster, plan.secret(pod))
            names.append(plan.name(number))
    except ClusterUnreachable as error:
        raise AllocationUnknownError(str(error)) from error
    except ClusterError as error:
        if not names:
            raise AllocationError(str(error)) from error
        LOG.warning("%d of %d workers were accepted; then %s", len(names), plan.request.count, error)
    return names


async def _create_pod(cluster: Cluster, body: dict[str, Any]) -> dict[str, Any]:
    """Create a pod, or return the one that an earlier try has created."""
    try:
        return await cluster.create("pods", body, patience_s=PATIENCE_S)
    except ClusterError as error:
        if error.status != 409 or error.reason != "AlreadyExists":
            raise
    found = await cluster.get("pods", body["metadata"]["name"], patience_s=PATIENCE_S)
    if _request_of(found) != _request_of(body):
        raise ClusterError(f"pod {body['metadata']['name']} belongs to another request", status=409)
    return found


async def _create_secret(cluster: Cluster, body: dict[str, Any]) -> None:
    """Create a Secret unless an earlier try has; a worker without its Secret waits, so it is deleted on a refusal."""
    try:
        await cluster.create("secrets", body, patience_s=PATIENCE_S)
    except ClusterUnreachable:
        raise
    except ClusterError as error:
        if error.status == 409 and error.reason == "AlreadyExists":
            return
        await cluster.delete("pods", body["metadata"]["name"], grace_s=0, patience_s=PATIENCE_S)
        raise


async def _why_waiting(cluster: Cluster, facts: PodFacts) -> PendingReason | None:
    """Return why a worker waits, by its status and its events; None if it does not, or the reason is not known."""
    if facts.is_over or (facts.main is not None and facts.main.state != "waiting"):
        return None
    try:
        events, _ = await cluster.list("events", fields=f"involvedObject.name={facts.name}")
    except ClusterUnreachable:
        raise
    except ClusterError:  # the account may not list events
        events = []
    return pending_reason(facts, map(PodEvent.of, events))


def _request_of(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REQUEST, ""))
