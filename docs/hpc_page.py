"""The page of HPC profiles: how a partition is chosen, and the built-in profiles."""

import inspect
from collections.abc import Callable

from torc_framework.builtin.profiles import torc_hpc_profiles
from torc_framework.hpc import partition_matching
from torc_framework.hpc.partition_columns import PARTITION_COLUMNS

Table = Callable[[list[str], list[list[str]]], str]

INTRO = """\
# HPC profiles

A profile describes a cluster: how torc recognizes it, which account is charged, and its partitions with the resources
of a node and the limits of requests. [Use HPC profiles](../how-to/use-hpc-profiles.md) shows the commands, [Command
line](cli.md) lists their options, and [Configuration](configuration.md) the keys of a profile.

## Where profiles come from

1. `[client.hpc.custom_profiles.NAME]` in the configuration;
2. the hook `torc_hpc_profiles` of installed plugins and of `torc_plugins/`, see [Ship an HPC
   profile](../how-to/ship-a-site-profile.md);
3. the built-in profiles, below.

If several have the same name, torc uses the whole profile of the first place. The account that is charged is
`default_account` of `[client.hpc.profile_overrides.NAME]`, else of the profile, else of `[client.hpc]`.

## How a cluster is recognised

`detect_env_var` is `NAME=value`: the variable must have exactly that value. `detect_hostname` is a regular expression;
torc searches for it anywhere in the name of the machine, and in its full name with the domain. One match is enough. If
several profiles match, torc uses the first in the order above.

## How a partition is chosen
"""

REST = """
Amounts are those of one node. `--memory` of `torc hpc match` takes `64g`, `512m` or a bare number of MiB;
`--walltime` takes `2h`, `90m`, `3600s`, `1h30m`, `04:00:00`, `2-12:00:00` and ISO 8601 (`PT4H`). Two fields such as
`2:30` are refused, because people read them as hours and minutes, Slurm as minutes and seconds.

## What `torc hpc generate` reads from Slurm

It calls `scontrol show config`, `show partition` and `show node`, once each.

| key | from |
|---|---|
| name of the profile | `ClusterName` |
| `detect_hostname` | the name of this machine: its domain, else its name without the last digits |
| `cpus_per_node` | the smallest `CPUEfctv` (before Slurm 22.05 `CPUTot`) of the nodes, at most `MaxCPUsPerNode` |
| `memory_mb` | the smallest `RealMemory` less `MemSpecLimit`, at most `MaxMemPerNode` |
| `gpus_per_node`, `gpu_type` | the smallest number of GPUs in `Gres`; all their types |
| `max_walltime_secs` | `MaxTime`; a year if it is `UNLIMITED` |
| `min_nodes`, `max_nodes` | `MinNodes`; `MaxNodes`, at most the number of nodes |
| `shared` | Slurm allocates CPUs and not whole nodes (`SelectType`), unless `OverSubscribe` changes this |
| `requires_explicit_request` | not `UP`, needs a reservation, or its jobs may be preempted or go before others |

The last two cases are those of clusters that preempt by partition: the partition is below or above the ordinary ones of
the same nodes. The command leaves out partitions for root alone and those without nodes. Slurm does not know the GPUs'
memory and the purpose of partitions; add these yourself.

## Built-in profiles
"""


def page(table: Table) -> str:
    """Return the page; ``table`` makes a Markdown table."""
    order = inspect.cleandoc(partition_matching.__doc__ or "").partition("\n\n")[2].replace("``", "`")
    parts = [INTRO, order, REST]
    for profile in torc_hpc_profiles():
        rows = [[str(source(partition)) for _, source in PARTITION_COLUMNS] for partition in profile.partitions]
        parts += [
            f"### {profile.display_name}\n",
            f"`{profile.name}`, recognized by `{profile.detect_env_var or profile.detect_hostname}`. The charge of a "
            f"node hour is {profile.charge_factor_cpu:g}, with GPUs {profile.charge_factor_gpu:g}.\n",
            table([heading for heading, _ in PARTITION_COLUMNS], rows),
        ]
    return "\n".join(parts)
