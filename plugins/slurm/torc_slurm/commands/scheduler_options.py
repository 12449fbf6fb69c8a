"""Common parts of the commands that plan schedulers: options, cluster, account, and the spec with its schedulers."""

import inspect
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from attrs import asdict, fields, frozen

from torc_framework.api import HpcProfile, UserError
from torc_framework.api.commands import Column, Session, executor_options, print_table

if TYPE_CHECKING:
    from torc_framework.api.planning import LoadOptions, PlanOptions, SchedulerPlan, WorkflowSpec

_E = TypeVar("_E", bound=StrEnum)

EXECUTOR: Final = "slurm"
_SHOWN_STAGES: Final = 5
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Spec file: YAML, JSON, JSON5 or KDL.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", "--force", help="Replace the schedulers that the spec has.")]
NoMonitoring = Annotated[bool, typer.Option("--no-resource-monitoring", help="No samples of what jobs use.")]
SkipChecks = Annotated[bool, typer.Option("--skip-checks", help="Skip the checks of scheduler nodes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would be created.")]


@frozen
class SchedulerChoices:
    """The options by which a person chooses how schedulers are planned.

    They are declared here once. `takes_scheduler_choices` adds them to a command.
    """

    account: Annotated[
        str | None,
        typer.Option(
            "--account",
            metavar="NAME",
            help="Account to charge (default: that of the workflow's schedulers, of slurm_defaults or of the profile).",
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "--hpc-profile",
            metavar="NAME",
            help="HPC profile (default: that of this machine, else one made from Slurm's description of the cluster).",
        ),
    ] = None
    single_allocation: Annotated[
        bool,
        typer.Option(
            "--single-allocation",
            help="Request all nodes of a scheduler in one allocation, with a runner on each, instead of one by one.",
        ),
    ] = False
    group_by: Annotated[
        str,
        typer.Option("--group-by", metavar="resource-requirements|partition", help="One scheduler for each of these."),
    ] = "resource-requirements"
    walltime_strategy: Annotated[
        str,
        typer.Option(
            "--walltime-strategy",
            metavar="max-job-runtime|max-partition-time",
            help="Request the longest run time of a job times the multiplier, or the partition's longest walltime.",
        ),
    ] = "max-job-runtime"
    walltime_multiplier: Annotated[
        float, typer.Option("--walltime-multiplier", min=1.0, help="Walltime in units of the longest run time.")
    ] = 1.5

    def plan_options(self, account: str, **more: Any) -> "PlanOptions":
        """Return the options of the planner.

        Raises:
            UserError: the grouping or the walltime strategy is unknown.
        """
        from torc_framework.api.planning import GroupBy, PlanOptions, WalltimeStrategy

        return PlanOptions(
            account=account,
            executor=EXECUTOR,
            group_by=_choice("--group-by", GroupBy, self.group_by),
            walltime_strategy=_choice("--walltime-strategy", WalltimeStrategy, self.walltime_strategy),
            walltime_multiplier=self.walltime_multiplier,
            single_allocation=self.single_allocation,
            **more,
        )


def takes_scheduler_choices(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of `SchedulerChoices` in place of its parameter ``choices``."""
    signature = inspect.signature(command)
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(SchedulerChoices)
    ]
    parameters = [
        option for each in signature.parameters.values() for option in (options if each.name == "choices" else [each])
    ]

    @wraps(command)
    def call(*args: Any, **given: Any) -> None:
        choices = SchedulerChoices(**{each.name: given.pop(each.name) for each in options})
        command(*args, choices=choices, **given)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _choice(flag: str, words: type[_E], given: str) -> _E:
    try:
        return words(given)
    except ValueError:
        raise UserError(f"{flag} is {given!r}; expected one of {', '.join(words)}") from None


@frozen
class GeneratedSpec:
    """A spec with schedulers.

    Attributes:
        spec: The spec with the planned schedulers and actions.
        planned: These schedulers and actions.
        profile: The cluster for which they were planned.
    """

    spec: "WorkflowSpec"
    planned: "SchedulerPlan"
    profile: HpcProfile

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON output."""
        return {
            "profile": self.profile.name,
            "slurm_schedulers": scheduler_rows(self.planned),
            "action_count": len(self.planned.actions),
            "warnings": self.planned.warnings,
        }


def generate_spec(
    session: Session,
    file: Path,
    options: "LoadOptions",
    choices: SchedulerChoices,
    *,
    overwrite: bool,
    actions: bool = True,
) -> GeneratedSpec:
    """Return the spec of a file with schedulers for its jobs; warnings go to standard error.

    Args:
        overwrite: Replace the schedulers that the file has.
        actions: Also plan the actions that request nodes.

    Raises:
        SpecError: the file has errors.
        UserError: the file has schedulers already; the account or the cluster is unknown, or no partition fits.
    """
    from torc_framework.api.planning import (
        has_schedulers,
        load_plan,
        load_spec,
        plan_schedulers,
        with_schedulers,
        without_schedulers,
    )

    spec = load_spec(file, options=options, warn=print_warning)
    if has_schedulers(spec):
        if not overwrite:
            raise UserError(
                f"{file} has schedulers already: submit it as it is ('torc submit {file}'), "
                "or replace them by --overwrite"
            )
        spec = without_schedulers(spec)
    loaded = load_plan(spec, options=options)
    profile = choose_profile(session, choices.profile)
    account = choose_account(choices.account, (spec.slurm_defaults or {}).get("account"), profile)
    plan_options = choices.plan_options(account, actions=actions, idle=idle_nodes(session, choices))
    planned = plan_schedulers(loaded.plan, profile, plan_options)
    for warning in planned.warnings:
        print_warning(warning)
    return GeneratedSpec(with_schedulers(spec, planned), planned, profile)


def print_warning(text: str) -> None:
    """Print a warning on standard error."""
    typer.echo(f"Warning: {text}", err=True)


def choose_profile(session: Session, name: str | None) -> HpcProfile:
    """Return the named profile, else that of this machine, else one made from Slurm's description of the cluster.

    Raises:
        UserError: there is no such profile; or none is for this machine, and Slurm does not answer.
    """
    from torc_framework.api.planning import current_cluster_profile

    plugins = session.plugins()
    options = executor_options(session, plugins, EXECUTOR)
    return current_cluster_profile(session.config.client.hpc, plugins, options, name, EXECUTOR)


def idle_nodes(session: Session, choices: SchedulerChoices) -> Mapping[str, Collection[str]]:
    """Return the idle nodes of this cluster by partition; none if a profile, perhaps of another cluster, is named."""
    from torc_framework.api.planning import idle_nodes_of

    plugins = session.plugins()
    return {} if choices.profile else idle_nodes_of(plugins, executor_options(session, plugins, EXECUTOR), EXECUTOR)


def choose_account(*given: Any) -> str:
    """Return the first account that is set: of the command line, of the workflow, of the profile.

    Args:
        given: Accounts or None in this order, then the profile.

    Raises:
        UserError: none is set.
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
    """Return one row per scheduler: its fields, the number of its jobs, the allocations of each of its actions."""
    found = []
    for position, record in enumerate(planned.schedulers):
        fields = {name: value for name, value in asdict(record).items() if name not in ("id", "workflow_id")}
        counts = [each.config["num_allocations"] for each in planned.actions if each.scheduler == position]
        found.append({**fields, "job_count": planned.bound.count(position), "num_allocations": counts})
    return found


def print_plan(planned: "SchedulerPlan") -> None:
    """Print a table of schedulers."""
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
