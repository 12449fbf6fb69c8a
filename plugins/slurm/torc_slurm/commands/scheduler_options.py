"""What the commands share that plan schedulers: their options, the cluster, the account, the spec that comes of it."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from attrs import asdict, frozen

from torc_framework.api import HpcProfile, UserError
from torc_framework.api.commands import Column, Session, executor_options, print_table

if TYPE_CHECKING:
    from torc_framework.api.planning import LoadOptions, PlanOptions, SchedulerPlan, WorkflowSpec

_E = TypeVar("_E", bound=StrEnum)

EXECUTOR: Final = "slurm"
_SHOWN_STAGES: Final = 5
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Spec file: YAML, JSON, JSON5 or KDL.")]
Account = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", help="Account to charge (default: that of slurm_defaults or profile)."),
]
_PROFILE_HELP: Final = "HPC profile (default: that of this machine, else what Slurm says of itself)."
Profile = Annotated[str | None, typer.Option("--profile", "--hpc-profile", metavar="NAME", help=_PROFILE_HELP)]
SingleAllocation = Annotated[
    bool,
    typer.Option(
        "--single-allocation",
        help="Ask for all nodes of a scheduler in one allocation, with a runner on each, instead of one by one.",
    ),
]
GroupByOption = Annotated[
    str,
    typer.Option("--group-by", metavar="resource-requirements|partition", help="One scheduler for each of these."),
]
Strategy = Annotated[
    str,
    typer.Option(
        "--walltime-strategy",
        metavar="max-job-runtime|max-partition-time",
        help="Ask for the longest run time of a job times the multiplier, or for all that the partition gives.",
    ),
]
Multiplier = Annotated[
    float, typer.Option("--walltime-multiplier", min=1.0, help="Walltime in units of the longest run time.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", "--force", help="Replace the schedulers that the spec has.")]


@frozen
class SchedulerChoices:
    """What a person asked of the planning; the names are those of `PlanOptions`."""

    account: str | None = None
    profile: str | None = None
    single_allocation: bool = False
    group_by: str = "resource-requirements"
    walltime_strategy: str = "max-job-runtime"
    walltime_multiplier: float = 1.5
    actions: bool = True
    overwrite: bool = False

    def plan_options(self, account: str, **more: Any) -> "PlanOptions":
        """Return them for the planner.

        Raises:
            UserError: a word is none of those allowed.
        """
        from torc_framework.api.planning import GroupBy, PlanOptions, WalltimeStrategy

        return PlanOptions(
            account=account,
            executor=EXECUTOR,
            group_by=_choice("--group-by", GroupBy, self.group_by),
            walltime_strategy=_choice("--walltime-strategy", WalltimeStrategy, self.walltime_strategy),
            walltime_multiplier=self.walltime_multiplier,
            single_allocation=self.single_allocation,
            actions=self.actions,
            **more,
        )


def _choice(flag: str, words: type[_E], given: str) -> _E:
    try:
        return words(given)
    except ValueError:
        raise UserError(f"{flag} is {given!r}; expected one of {', '.join(words)}") from None


@frozen
class GeneratedSpec:
    """A spec with schedulers.

    Attributes:
        planned: What was put into it.
        profile: The cluster for which.
    """

    spec: "WorkflowSpec"
    planned: "SchedulerPlan"
    profile: HpcProfile

    def as_dict(self) -> dict[str, Any]:
        """Return what scripts read."""
        return {
            "profile": self.profile.name,
            "slurm_schedulers": scheduler_rows(self.planned),
            "action_count": len(self.planned.actions),
            "warnings": self.planned.warnings,
        }


def generate_spec(session: Session, file: Path, options: "LoadOptions", wanted: SchedulerChoices) -> GeneratedSpec:
    """Return the spec of a file with schedulers for its jobs; warnings go to standard error.

    Raises:
        SpecError: something is wrong with the file.
        UserError: it has schedulers already; no account, no cluster, or no partition is known for it.
    """
    from torc_framework.api.planning import (
        has_schedulers,
        load_plan,
        load_spec,
        plan_schedulers,
        with_schedulers,
        without_schedulers,
    )

    spec = load_spec(file, options=options)
    if has_schedulers(spec):
        if not wanted.overwrite:
            raise UserError(
                f"{file} has schedulers already: submit it as it is ('torc submit {file}'), "
                "or replace them by --overwrite"
            )
        spec = without_schedulers(spec)
    loaded = load_plan(spec, options=options)
    profile = choose_profile(session, wanted.profile)
    account = choose_account(wanted.account, (spec.slurm_defaults or {}).get("account"), profile)
    planned = plan_schedulers(loaded.plan, profile, wanted.plan_options(account, idle=idle_nodes(session, wanted)))
    for warning in planned.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    return GeneratedSpec(with_schedulers(spec, planned), planned, profile)


def choose_profile(session: Session, name: str | None) -> HpcProfile:
    """Return the named profile, else that of this machine, else what Slurm says of the cluster.

    Raises:
        UserError: there is no such profile; nothing is known of this machine, and Slurm does not answer.
    """
    from torc_framework.api.planning import current_cluster_profile

    plugins = session.plugins()
    options = executor_options(session, plugins, EXECUTOR)
    return current_cluster_profile(session.config.client.hpc, plugins, options, name, EXECUTOR)


def idle_nodes(session: Session, wanted: SchedulerChoices) -> Mapping[str, Collection[str]]:
    """Return the idle nodes of this cluster by partition; none where another may have been named."""
    from torc_framework.api.planning import idle_nodes_of

    plugins = session.plugins()
    return {} if wanted.profile else idle_nodes_of(plugins, executor_options(session, plugins, EXECUTOR), EXECUTOR)


def choose_account(*given: Any) -> str:
    """Return the first account: of the command line, of the workflow, of the profile.

    Raises:
        UserError: there is none.
    """
    *names, profile = given
    found = next((str(name) for name in (*names, profile.default_account) if name), None)
    if found is None:
        raise UserError(
            "no account to charge: give --account, or account under slurm_defaults in the spec, or "
            "default_account under [client.hpc] in the configuration"
        )
    return found


def scheduler_rows(planned: "SchedulerPlan") -> list[dict[str, Any]]:
    """Return one row for each scheduler: its fields, how many jobs are bound to it, the allocations of each action."""
    found = []
    for position, record in enumerate(planned.schedulers):
        fields = {name: value for name, value in asdict(record).items() if name not in ("id", "workflow_id")}
        counts = [each.config["num_allocations"] for each in planned.actions if each.scheduler == position]
        found.append({**fields, "job_count": planned.bound.count(position), "num_allocations": counts})
    return found


def print_plan(planned: "SchedulerPlan") -> None:
    """Show schedulers to a person."""
    print_table(_COLUMNS, scheduler_rows(planned))


def _allocations(row: Mapping[str, Any]) -> str:
    counts = row["num_allocations"]
    return f"{sum(counts)} in {len(counts)} stages" if len(counts) > _SHOWN_STAGES else ", ".join(map(str, counts))


def _column(name: str) -> Any:
    return lambda row: row[name]


_COLUMNS: Final[list[Column]] = [
    ("Scheduler", _column("name")),
    ("Partition", _column("partition")),
    ("Nodes", _column("nodes")),
    ("Walltime", _column("walltime")),
    ("Memory", _column("mem")),
    ("GRES", _column("gres")),
    ("Jobs", _column("job_count")),
    ("Allocations", _allocations),
]
