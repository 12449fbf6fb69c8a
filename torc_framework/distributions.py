"""The distributions of this project: what each offers, and how it is installed.

This table is the one place of the framework that names executors and plugins of other distributions. Messages about a
name that no installed plugin offers use it to name the distribution that does.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, NamedTuple

from torc_framework.errors import TorcError, UserError

ANY: Final = "*"
"""Name of an offer of which any one serves."""


class Distribution(NamedTuple):
    """One distribution; a named tuple, because attrs takes a sixth of the time of a help page to import.

    Attributes:
        name: Its name.
        folder: Its folder in the repository.
        offers: Names that it offers, by kind: ``executor``, ``command``, ``failure rule key``, ``option`` (a flag),
            ``ending`` (a class of endings on which its recovery policy decides), ``verdict``, ``batch system``,
            ``container`` (an executor that runs containers), ``plugin``.
    """

    name: str
    folder: str
    offers: Mapping[str, tuple[str, ...]]

    @property
    def how_to_get(self) -> str:
        """How a user gets it: the command that installs it."""
        return (
            f"it belongs to {self.name}, which is not installed or is disabled; to install it: "
            f"{install_command(self.folder, self.name)}"
        )


def install_command(folder: str, name: str) -> str:
    """Return the commands that install a distribution or an extra: from a clone, and by name."""
    path = folder if folder.startswith(".") else f"./{folder}"
    quoted = f"'{path}'" if "[" in path else path
    return f"pip install {quoted} in a clone of torc_framework (pip install '{name}' once it is published)"


def install_extra(extra: str) -> str:
    """Return the commands that install an extra of the framework, such as ``mcp``."""
    return install_command(f".[{extra}]", f"torc-framework[{extra}]")


def require_extra(extra: str, module: str, what: str, kind: type[TorcError] = UserError) -> None:
    """Refuse to continue without the library of an extra.

    Args:
        extra: The extra, such as ``tui``.
        module: A module that it installs.
        what: What the library is for.
        kind: The class of the error.

    Raises:
        TorcError: the module cannot be imported; the message has the command that installs it.
    """
    try:
        import_module(module)
    except ImportError as error:
        raise kind(f"the library for {what} is missing ({error}); install it with: {install_extra(extra)}") from error


DISTRIBUTIONS: Final = (
    Distribution("torc-local", "plugins/local", {"plugin": ("local",), "executor": ("local",)}),
    Distribution(
        "torc-slurm",
        "plugins/slurm",
        {
            "plugin": ("slurm",),
            "executor": ("slurm",),
            "command": ("slurm", "submit-slurm", "workflows create-slurm"),
            "batch system": (ANY,),
        },
    ),
    Distribution(
        "torc-osmo", "plugins/osmo", {"plugin": ("osmo",), "failure rule key": ("exit_actions", "exitActions")}
    ),
    Distribution(
        "torc-recovery-oom",
        "plugins/recovery_oom",
        {
            "plugin": ("oom",),
            "option": ("--memory-margin", "--max-memory", "--max-runtime"),
            "ending": ("oom", "timeout"),
        },
    ),
    Distribution(
        "torc-recovery-ai", "plugins/recovery_ai", {"plugin": ("recovery_ai",), "verdict": ("--ai-recovery",)}
    ),
    Distribution("torc-sysexits", "plugins/sysexits", {"plugin": ("sysexits",)}),
    Distribution("torc-ssh", "plugins/ssh", {"plugin": ("ssh",), "executor": ("ssh",), "command": ("remote",)}),
    Distribution(
        "torc-k8s",
        "plugins/k8s",
        {"plugin": ("k8s",), "executor": ("k8s",), "command": ("k8s",), "container": (ANY,)},
    ),
)
"""All distributions of the project, besides the framework itself."""

OTHER_NAMES: Final[Mapping[tuple[str, str], str]] = {
    ("executor", "kubernetes"): "k8s",
    ("executor", "kube"): "k8s",
    ("command", "kubernetes"): "k8s",
    ("command", "kube"): "k8s",
}
"""What a name of a kind probably means that resembles the right one too little for a comparison of spellings."""


def distribution_of(kind: str, name: str) -> Distribution | None:
    """Return the distribution that offers a name of this kind; None if none does."""
    return next((each for each in DISTRIBUTIONS if name in each.offers.get(kind, ())), None)


def how_to_get(kind: str, name: str) -> str:
    """Return how a user gets what has this name, or the right name; empty if no distribution offers it."""
    if found := distribution_of(kind, name):
        return found.how_to_get
    meant = OTHER_NAMES.get((kind, name.lower()))
    return f"did you mean {meant!r}?" if meant else ""
