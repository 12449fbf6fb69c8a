"""The specifications of the pods of one runner; the first one is preceded by the objects that all of them need."""

import asyncio
from functools import partial
from typing import Any

from attrs import evolve

from torc_framework.api import Attempt, ConfigError, LaunchError, RunnerContext
from torc_k8s.executor.member_pod import LogPaths
from torc_k8s.executor.names import owner_name
from torc_k8s.executor.planned_pods import PlannedPods
from torc_k8s.executor.pod_owner import create_owner, owner_reference
from torc_k8s.executor.scope_services import ScopeServices
from torc_k8s.groups import GroupPlan, plan_group
from torc_k8s.pods.pod_options import PodOptions
from torc_k8s.pods.pod_spec import PodPlan, build_pod, options_of
from torc_k8s.pods.template import PodTemplate, load_template


class PodPlanner:
    """Makes the specifications of the pods of one runner.

    Args:
        services: What all pods of the scope share.
        context: The runner.
    """

    def __init__(self, services: ScopeServices, context: RunnerContext) -> None:
        self._services, self._context = services, context
        self._options = services.options.pod_options()
        self._templates: dict[str, PodTemplate] = {}
        self._owner: dict[str, Any] | None = None
        self._creating = asyncio.Lock()

    async def plan(self, attempt: Attempt) -> PlannedPods:
        """Return the pods of an attempt.

        Raises:
            LaunchError: it cannot be a pod.
            ClusterError: the cluster refuses the objects that all pods need.
        """
        owner = await self._existing_owner()
        services, environment = self._services, self._context.server_environment
        plan = PodPlan(
            scope=services.scope,
            workflow_id=self._context.workflow_id,
            namespace=services.cluster.namespace,
            attempt=attempt,
            options=self._options,
            template=self._template(attempt),
            owner=owner_reference(owner),
            secret=owner_name(services.scope) if environment else "",
            secret_names=frozenset(environment),
            limit_s=attempt.resources.runtime_s,
            headroom_s=self._context.term_lead_s if attempt.supports_termination else 0.0,
            lost_after_s=services.options.lost_after_s,
            log_wait_s=services.options.log_wait_s,
        )
        group = plan_group(attempt, options_of(attempt, self._options).group)
        if group is None:
            pod = build_pod(plan)
            return PlannedPods(lambda _rank, _number: pod)
        for rank in range(len(group.members)):
            _member_pod(plan, group, rank, 0)  # raises now what it would raise later
        return PlannedPods(partial(_member_pod, plan, group), group)

    def _template(self, attempt: Attempt) -> PodTemplate | None:
        """Return the template of an attempt's pod.

        Raises:
            LaunchError: it cannot be read.
        """
        path = options_of(attempt, self._options).pod_template
        if path is None:
            return None
        if path not in self._templates:
            try:
                self._templates[path] = load_template(path)
            except ConfigError as error:
                raise LaunchError(str(error)) from None
        return self._templates[path]

    async def _existing_owner(self) -> dict[str, Any]:
        async with self._creating:
            if self._owner is None:
                services, context = self._services, self._context
                self._owner = await services.settle(lambda: create_owner(services.cluster, services.scope, context))
            return self._owner


def _member_pod(plan: PodPlan, group: GroupPlan, rank: int, number: int) -> dict[str, Any]:
    """Return a pod of one member of a group.

    Args:
        plan: The pod of the attempt as if it were a single one.
        group: The group.
        rank: The member.
        number: Number of the pod among those of this member.
    """
    member = group.members[rank]
    attempt = member.attempt_of(plan.attempt)
    logs = LogPaths(attempt.stdout_path, attempt.stderr_path).of_member(rank, number)
    attempt = evolve(attempt, stdout_path=logs.stdout, stderr_path=logs.stderr)
    if member.task is not None and member.task.image and isinstance(attempt.options, PodOptions):
        attempt = evolve(attempt, options=evolve(attempt.options, image=member.task.image))
    environment = {
        "TORC_MEMBER_NAME": member.name,
        "TORC_MEMBER_RANK": str(rank),
        "TORC_MEMBER_COUNT": str(len(group.members)),
    }
    return build_pod(
        evolve(
            plan,
            attempt=attempt,
            environment={**plan.environment, **environment},
            waits_for_go=group.barrier,
            member=rank,
            retry=number,
        )
    )
