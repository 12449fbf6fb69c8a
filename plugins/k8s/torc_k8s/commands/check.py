"""``torc k8s check``: whether torc can run jobs on the cluster."""

from operator import itemgetter
from typing import Annotated, Any, Final

import typer

from torc_framework.api.commands import Column, CommandGroup, executor_options, print_json, print_table, session_of
from torc_k8s.cluster import Cluster, ClusterAddress, loop_thread
from torc_k8s.cluster.self_check import ClusterReport, RightAnswer, check_cluster, probe_pod

Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="File that describes the cluster, instead of that of the configuration."
    ),
]
Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig; its current one unless given.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace; that of the context unless given.")
]


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("check")(check)


def check(
    ctx: typer.Context,
    *,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    namespace: Namespace = "",
    image: Annotated[
        str, typer.Option("--image", metavar="IMAGE", help="Image of the pod that is tried; it is not pulled.")
    ] = "",
) -> None:
    """Check whether torc can run jobs on the cluster: connection, account, rights, limits of the namespace.

    A pod is sent to the cluster for examination and is not created.

    Exit code 1: a right that torc needs is missing, or a pod is refused. Exit code 3: the cluster does not answer.

    Examples:
        torc k8s check
        torc k8s check --context staging --namespace jobs
        torc k8s check -f json
    """
    session = session_of(ctx)
    options = executor_options(session, session.plugins(skip_untrusted=True), "k8s").get("k8s", {})
    address = ClusterAddress(
        kubeconfig or str(options.get("kubeconfig") or ""),
        context or str(options.get("context") or ""),
        namespace or str(options.get("namespace") or ""),
    )
    report = loop_thread.run(_report(address, image or str(options.get("image") or "") or "busybox:1"))
    if session.wants_json:
        print_json(_document(report))
    else:
        _print(report)
    if report.problems:
        raise typer.Exit(1)


async def _report(address: ClusterAddress, image: str) -> ClusterReport:
    cluster = await Cluster.open(address)
    try:
        return await check_cluster(cluster, probe_pod(image))
    finally:
        await cluster.close()


def _document(report: ClusterReport) -> dict[str, Any]:
    return {
        "is_usable": not report.problems,
        "url": report.url,
        "version": _version(report),
        "account": report.account,
        "namespace": report.namespace,
        "rights": [_row(answer) for answer in report.rights],
        "quotas": report.quotas,
        "limits": report.limits,
        "problems": report.problems,
        "notes": report.notes,
    }


def _print(report: ClusterReport) -> None:
    print(f"{report.url}: Kubernetes {_version(report)}")
    print(f"account {report.account}, namespace {report.namespace}")
    print_table(_COLUMNS, [_row(answer) for answer in report.rights])
    for quota in report.quotas:
        used = (f"{name} {quota['used'].get(name, '0')} of {hard}" for name, hard in sorted(quota["hard"].items()))
        print(f"quota {quota['name']}: {', '.join(used) or 'no values'}")
    for limit in report.limits:
        for each in limit["limits"]:
            bounds = (f"{bound} {values}" for bound in ("min", "max", "default") if (values := _pairs(each.get(bound))))
            print(f"limits {limit['name']}, each {each.get('type', '')}: {', '.join(bounds)}")
    for note in report.notes:
        print(f"Note: {note}.")
    for problem in report.problems:
        print(f"Problem: {problem}.")
    if not report.problems:
        print("Torc can run jobs here.")


def _row(answer: RightAnswer) -> dict[str, Any]:
    right = answer.right
    return {
        "resource": right.resource,
        "verbs": list(right.verbs),
        "missing": answer.missing,
        "feature": right.feature,
        "is_required": right.required,
    }


def _answer_text(row: dict[str, Any]) -> str:
    return f"may not {', '.join(row['missing'])}" if row["missing"] else "yes"


def _pairs(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted((values or {}).items()))


def _version(report: ClusterReport) -> str:
    return ".".join(map(str, report.version))


_COLUMNS: Final[list[Column]] = [
    ("Right", itemgetter("resource")),
    ("Verbs", lambda row: " ".join(row["verbs"])),
    ("Granted", _answer_text),
    ("Torc needs it to", itemgetter("feature")),
]
