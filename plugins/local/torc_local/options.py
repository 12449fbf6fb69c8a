"""Options of the executor ``local``."""

from typing import Final

from attrs import define

from torc_framework.api import ConfigError, LaunchError, option, shell_command

SHELL_HELP: Final = "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given."
MEMORY_CGROUP: Final = ("auto", "off", "require")


@define
class LocalOptions:
    """Options of the executor ``local``."""

    shell: str = option("", SHELL_HELP, metavar="SHELL")
    memory_cgroup: str = option(
        "auto",
        "Control groups that hold attempts to their memory with --enforce-limits: auto (where they can be made), off "
        "or require.",
        metavar="MODE",
    )

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for invalid values, before any job is run."""
        if self.memory_cgroup not in MEMORY_CGROUP:
            modes = ", ".join(MEMORY_CGROUP)
            raise ConfigError(f"memory_cgroup of executor local is {self.memory_cgroup!r}; it must be one of {modes}")
        try:
            shell_command(self.shell)
        except LaunchError as error:
            raise ConfigError(f"shell of executor local: {error}") from None
