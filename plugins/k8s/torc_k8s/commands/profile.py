"""``torc k8s profile``: what the cluster offers to pods of a namespace."""

from typing import Any, Final

import typer

from torc_framework.api.commands import (
    Column,
    CommandGroup,
    executor_options,
    memory_text,
    print_json,
    print_table,
    session_of,
)
from torc_k8s.cluster import Cluster, ClusterAddress, loop_thread
from torc_k8s.pods.options import K8sOptions
from torc_k8s.survey.cluster_survey import ClusterSurvey, PodAmounts, query_survey

_COLUMNS: Final[list[Column]] = [("What", "what"), ("CPUs", "cpus"), ("Memory", "memory"), ("GPUs", "gpus")]


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("profile")(profile)


def profile(ctx: typer.Context) -> None:
    """Show what the cluster offers to pods: nodes, the limits of the namespace, its quota, and the largest pod.

    Recovery raises requests no further than the largest pod. 'torc hpc generate --executor k8s' writes the same as a
    profile into the configuration.

    Examples:
        torc k8s profile
        torc k8s profile -f json
    """
    session = session_of(ctx)
    options = K8sOptions(**executor_options(session, session.plugins(skip_untrusted=True), "k8s").get("k8s", {}))
    survey = loop_thread.run(_survey(options))
    largest = survey.largest_pod()
    if session.wants_json:
        print_json(_document(survey))
        return
    rows: list[dict[str, Any]] = [{"what": f"node {each.name}", **_row(each.amounts)} for each in survey.nodes or ()]
    rows += [{"what": "limits of a pod", **_row(survey.limits)}, {"what": "quota of all pods", **_row(survey.quota)}]
    if largest is not None:
        most = PodAmounts(None, largest.memory_bytes, largest.num_gpus)
        rows.append({"what": "largest pod", **_row(most), "cpus": str(largest.num_cpus)})
    print(f"Namespace {survey.namespace}")
    print_table(_COLUMNS, rows)
    for text in survey.unknown:
        typer.echo(f"Not known: {text}", err=True)


async def _survey(options: K8sOptions) -> ClusterSurvey:
    cluster = await Cluster.open(ClusterAddress(options.kubeconfig, options.context, options.namespace))
    try:
        return await query_survey(cluster, options.pod_options())
    finally:
        await cluster.close()


def _row(amounts: PodAmounts) -> dict[str, str]:
    return {
        "cpus": "-" if amounts.cpus is None else f"{amounts.cpus:f}",
        "memory": memory_text(amounts.memory_bytes) or "-",
        "gpus": "-" if amounts.gpus is None else str(amounts.gpus),
    }


def _document(survey: ClusterSurvey) -> dict[str, Any]:
    largest = survey.largest_pod()
    return {
        "namespace": survey.namespace,
        "nodes": None
        if survey.nodes is None
        else [{"name": each.name, "gpu_type": each.gpu_type, **_values(each.amounts)} for each in survey.nodes],
        "limits": _values(survey.limits),
        "quota": _values(survey.quota),
        "largest_pod": None
        if largest is None
        else {"cpus": largest.num_cpus, "memory_bytes": largest.memory_bytes, "gpus": largest.num_gpus},
        "unknown": list(survey.unknown),
    }


def _values(amounts: PodAmounts) -> dict[str, Any]:
    cpus = None if amounts.cpus is None else float(amounts.cpus)
    return {"cpus": cpus, "memory_bytes": amounts.memory_bytes, "gpus": amounts.gpus}
