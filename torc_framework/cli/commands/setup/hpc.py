"""``torc hpc``: profiles of clusters: lists, detects and writes them, and matches partitions to requirements."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import Column, print_json, print_pairs, print_table
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import ExitStatus, UserError
from torc_framework.hpc.partition_columns import PARTITION_COLUMNS
from torc_framework.hpc.partition_matching import (
    best_partition,
    matching_partitions,
    mismatch_reason,
    partition_named,
    resources_text,
)
from torc_framework.hpc.profiles import detect_profile, detection_reason, known_profiles, profile_named
from torc_framework.hpc.walltimes import parse_walltime
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.resources import Resources, parse_memory
from torc_framework.text.status_text import symbol

app = CommandGroup("Profiles of clusters: their partitions, and which of these fit a job.")

_MIB: Final = 1024**2
_STANDBY: Final = ("stdby", "standby")


def _profile_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the profiles whose names begin so, as completions."""
    try:
        found = _profiles(session_of(ctx))
    except Exception:  # an error message would spoil the line that is being typed
        return []
    return [(name, profile.display_name) for name, profile in found.items() if name.startswith(incomplete)]


_Name = Annotated[str, typer.Argument(metavar="PROFILE", help="The cluster's profile.", autocompletion=_profile_names)]
_NameOrHere = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROFILE]",
        help="The cluster's profile (default: this machine's cluster).",
        autocompletion=_profile_names,
    ),
]


def _profiles(session: Session) -> dict[str, HpcProfile]:
    return known_profiles(session.config.client.hpc, session.plugins(skip_untrusted=True))


def _cluster(session: Session, name: str | None) -> HpcProfile:
    """Return the named profile, else that of this machine's cluster: a known one, or one made by its batch system."""
    from torc_framework.cli.shared.plugin_flags import executor_options
    from torc_framework.hpc.cluster_profile import current_cluster_profile

    plugins = session.plugins()
    return current_cluster_profile(session.config.client.hpc, plugins, executor_options(session, plugins, ""), name)


# --- profiles -------------------------------------------------------------------------------------


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List the known profiles; a mark shows this machine's cluster.

    Examples:
        torc hpc list
    """
    session = session_of(ctx)
    profiles = [profile for _, profile in sorted(_profiles(session).items())]
    if session.wants_json:
        print_json(
            [
                {
                    "name": profile.name,
                    "display_name": profile.display_name,
                    "description": profile.description,
                    "partition_count": len(profile.partitions),
                    "detected": detection_reason(profile) is not None,
                }
                for profile in profiles
            ]
        )
        return
    columns: list[Column] = [
        ("Name", "name"),
        ("Display Name", "display_name"),
        ("Partitions", lambda profile: len(profile.partitions)),
        ("Detected", lambda profile: symbol("✓", "yes") if detection_reason(profile) else ""),
    ]
    print("Known HPC profiles:")
    print_table(columns, profiles)


@app.command("detect")
def detect_(ctx: typer.Context) -> None:
    """Show which cluster this machine belongs to; exit code 1 if it belongs to no known one.

    Examples:
        torc hpc detect
    """
    session = session_of(ctx)
    profiles = _profiles(session)
    here = detect_profile(profiles.values())
    if here is None:
        if session.wants_json:
            print_json({"detected": False, "message": "no known cluster", "known": sorted(profiles)})
        else:
            print(f"This machine is on no known cluster. Known: {', '.join(sorted(profiles))}")
        raise typer.Exit(int(ExitStatus.FAILED))
    by = detection_reason(here)
    if session.wants_json:
        facts = {"name": here.name, "display_name": here.display_name, "description": here.description}
        print_json({"detected": True, **facts, "detected_by": by})
    else:
        print(f"{here.name} ({here.display_name}), recognised by {by}")


@app.command("show")
def show(ctx: typer.Context, name: _Name) -> None:
    """Show a profile: how it is detected, which account is charged, how many partitions it has.

    Examples:
        torc hpc show kestrel
    """
    session = session_of(ctx)
    profile = profile_named(_profiles(session), name)
    by = detection_reason(profile)
    if session.wants_json:
        print_json({**attrs.asdict(profile), "detected": by is not None})
        return
    gpus = sum(partition.gpus_per_node > 0 for partition in profile.partitions)
    total = len(profile.partitions)
    print_pairs(
        f"HPC profile {name}:",
        {
            "Display name": profile.display_name,
            "Description": profile.description or None,
            "Recognised by variable": profile.detect_env_var,
            "Recognised by host name": profile.detect_hostname,
            "Detected": f"yes, by {by}" if by else "no",
            "Default account": profile.default_account or "none",
            "Charge of a node hour": f"{profile.charge_factor_cpu:g}, with GPUs {profile.charge_factor_gpu:g}",
            "Partitions": f"{total} ({gpus} with GPUs); 'torc hpc partitions {name}' lists them",
        },
    )


# --- partitions -----------------------------------------------------------------------------------


@app.command("partitions")
def partitions(
    ctx: typer.Context,
    name: _NameOrHere = None,
    *,
    gpu: Annotated[bool, typer.Option("--gpu", help="Only partitions with GPUs.")] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="Only partitions without GPUs.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="Only partitions whose nodes are shared.")] = False,
) -> None:
    """List the partitions of a cluster.

    Examples:
        torc hpc partitions
        torc hpc partitions kestrel --gpu
    """
    session = session_of(ctx)
    if gpu and cpu:
        raise UserError("--gpu and --cpu leave nothing; give one of them")
    profile = _cluster(session, name)
    found = [
        partition
        for partition in profile.partitions
        if (not gpu or partition.gpus_per_node)
        and (not cpu or not partition.gpus_per_node)
        and (not shared or partition.shared)
    ]
    if session.wants_json:
        print_json(found)
        return
    print(f"Partitions for {profile.name}:" if found else f"No such partitions for {profile.name}.")
    if found:
        print_table(PARTITION_COLUMNS, found)


@app.command("match")
def match(
    ctx: typer.Context,
    name: _NameOrHere = None,
    *,
    cpus: Annotated[int, typer.Option("--cpus", metavar="N", min=1, help="CPUs of a node.")] = 1,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory of a node: 64g, 512m; a bare number is MiB.")
    ] = "1g",
    walltime: Annotated[
        str, typer.Option("--walltime", metavar="TIME", help="Time: 2h, 30m, 04:00:00, 2-00:00:00, PT4H.")
    ] = "1h",
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", min=0, help="GPUs of a node.")] = 0,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, help="Nodes at once.")] = 1,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="Only consider this partition.")
    ] = None,
    profile_name: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="The profile, as PROFILE does.", autocompletion=_profile_names),
    ] = None,
) -> None:
    """Show which partitions fit a job; the best first, and why the others do not.

    The cluster is the named one, else this machine's; if no profile of that is known, its batch system is asked, as
    'torc submit-slurm' does. Exit code 1 if no partition fits.

    Examples:
        torc hpc match kestrel --cpus 36 --memory 64g --walltime 4h
        torc hpc match --gpus 2 --walltime '1 d 12 h'
    """
    session = session_of(ctx)
    if name is not None and profile_name is not None:
        raise UserError("the profile is given twice; leave PROFILE or --profile out")
    profile = _cluster(session, name or profile_name)
    wanted = Resources(cpus, _memory_bytes(memory), gpus, nodes, _walltime_s(walltime))
    if partition is None:
        found = matching_partitions(profile, wanted)
        others = {each.name: mismatch_reason(each, wanted) for each in profile.partitions if each not in found}
    else:
        reason = mismatch_reason(partition_named(profile, partition), wanted, named=True)
        found = [] if reason else [best_partition(profile, wanted, partition=partition)]
        others = {partition: reason} if reason else {}
    if session.wants_json:
        print_json(_match_document(profile, wanted, found, others))
    else:
        _print_match(profile, wanted, found, others)
    if not found:
        raise typer.Exit(int(ExitStatus.FAILED))


def _memory_bytes(text: str) -> int:
    """Return the bytes of ``--memory``; a bare number is MiB, as in Slurm.

    Raises:
        UserError: it is not a size.
    """
    try:
        return parse_memory(f"{text}m" if text.isascii() and text.isdecimal() else text)
    except ValueError as error:
        raise UserError(f"--memory: {error}") from None


def _walltime_s(text: str) -> int:
    """Return the seconds of ``--walltime``.

    Raises:
        UserError: it is not a time.
    """
    try:
        return parse_walltime(text)
    except ValueError as error:
        raise UserError(f"--walltime: {error}") from None


def _match_document(
    profile: HpcProfile, wanted: Resources, found: Sequence[Partition], others: dict[str, str | None]
) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "requirements": {
            "cpus": wanted.num_cpus,
            "memory_mb": -(-wanted.memory_bytes // _MIB),
            "walltime_secs": wanted.runtime_s,
            "gpus": wanted.num_gpus,
            "nodes": wanted.num_nodes,
        },
        "matching_partitions": found,
        "best_partition": found[0] if found else None,
        "not_matching": others,
    }


def _print_match(
    profile: HpcProfile, wanted: Resources, found: Sequence[Partition], others: dict[str, str | None]
) -> None:
    if found:
        print(f"Partitions of {profile.name} that fit {resources_text(wanted)}, the best first:")
        print_table(PARTITION_COLUMNS, found)
    else:
        print(f"No partition of {profile.name} fits {resources_text(wanted)}.")
    if others:
        print_pairs("Not fitting:", others)


# --- a new profile --------------------------------------------------------------------------------


@app.command("generate")
def generate(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the profile (default: the cluster's).")
    ] = None,
    display_name: Annotated[
        str | None, typer.Option("--display-name", metavar="TEXT", help="Name in tables (default: the name).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="New file to write (default: print).")
    ] = None,
    skip_stdby: Annotated[
        bool, typer.Option("--skip-stdby", help="Leave out standby partitions: names that end in stdby or standby.")
    ] = False,
    executor: Annotated[
        str | None,
        typer.Option("--executor", metavar="NAME", help="Executor that describes the cluster, if several can."),
    ] = None,
) -> None:
    """Describe this machine's cluster; as a section for the configuration file.

    Examples:
        torc hpc generate
        torc hpc generate --name research --output research.toml
    """
    from torc_framework.cli.shared.plugin_flags import executor_options
    from torc_framework.hpc.cluster_profile import query_cluster_profile
    from torc_framework.hpc.profile_toml import profile_toml

    session = session_of(ctx)
    plugins = session.plugins(skip_untrusted=True)
    found = query_cluster_profile(plugins, executor_options(session, plugins, executor or ""), executor)
    if skip_stdby:
        kept = tuple(each for each in found.partitions if not each.name.lower().endswith(_STANDBY))
        if not kept:
            raise UserError(f"all partitions of {found.name!r} are standby partitions: leave out --skip-stdby")
        found = attrs.evolve(found, partitions=kept)
    chosen = name or found.name
    shown = display_name or (found.display_name if name is None else "") or chosen.capitalize()
    profile = attrs.evolve(found, name=chosen, display_name=shown)
    text = profile_toml(profile)
    if output is not None:
        _write(output, text)
    if session.wants_json:
        print_json({"profile": profile, "path": None if output is None else str(output)})
    elif output is None:
        print(text, end="")
    else:
        print(f"Wrote {output}: profile {chosen} with {len(profile.partitions)} partition(s)")


def _write(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        UserError: it exists, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} is there already: give another name, or remove it first") from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
