"""``torc slurm create|update|list|get|delete``: records of schedulers, each of which describes a kind of allocation."""

from typing import Any, Final

from attrs import NOTHING

from torc_framework.api import SlurmSchedulerRecord, UserError
from torc_framework.api.commands import CommandGroup, RecordCommands, record_option
from torc_slurm.shared.slurm_times import parse_sbatch_time


def register(app: CommandGroup) -> None:
    """Add the commands to a group."""
    SCHEDULERS.add(app, "create", "update", "list", "get", "delete")


def read_walltime(text: str, flag: str) -> str:
    """Return a time limit, if sbatch accepts it.

    Raises:
        UserError: sbatch does not.
    """
    if not parse_sbatch_time(text):
        raise UserError(f"{flag} is {text!r}; expected a time such as 04:00:00 or 1-12:00:00")
    return text


_MEM: Final = "Memory per node, such as 180G."
_GRES: Final = "GPUs and other resources per node, such as gpu:2."
_TMP: Final = "Local storage per node, such as 100G."
_EXTRA: Final = "More options of sbatch, as in --extra='--constraint=skylake --exclusive'."
_COMMON_OPTIONS: Final[tuple[Any, ...]] = (
    record_option("account", "--account", "-a"),
    record_option("gres", "--gres", "-g", help=_GRES),
    record_option("mem", "--mem", "-m", help=_MEM),
    record_option("partition", "--partition", "-p", help="Partition; by default the cluster chooses."),
    record_option("qos", "--qos", "-q"),
    record_option("tmp", "--tmp", "-t", help=_TMP),
    record_option("ntasks_per_node", low=1),
    record_option("extra", "--extra", "-e", help=_EXTRA),
)
SCHEDULERS: Final = RecordCommands(
    record=SlurmSchedulerRecord,
    one="a Slurm scheduler",
    several="slurm schedulers",
    columns=[
        ("ID", "id"),
        ("Name", "name"),
        ("Account", "account"),
        ("Partition", "partition"),
        ("QOS", "qos"),
        ("Nodes", "nodes"),
        ("Walltime", "walltime"),
        ("Memory", "mem"),
        ("GRES", "gres"),
        ("Extra", "extra"),
    ],
    create=(
        record_option("name", "--name", "-n", default=NOTHING),
        record_option("nodes", "--nodes", "-N", low=1, default=1),
        record_option("walltime", "--walltime", "-W", read=read_walltime, default="04:00:00"),
        *_COMMON_OPTIONS,
    ),
    update=(
        record_option("name", "--name", "-N"),
        record_option("nodes", "--nodes", "-n", low=1),
        record_option("walltime", "--walltime", "-W", read=read_walltime),
        *_COMMON_OPTIONS,
    ),
    notes={"delete": "Actions that name it fail from then on."},
    examples={"create": "12 --name short --account research --walltime 04:00:00", "update": "34 --nodes 2"},
)
