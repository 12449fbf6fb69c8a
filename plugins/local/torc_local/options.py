"""Options of the executor ``local``."""

from typing import Final

from attrs import define

from torc_framework.api import ConfigError, LaunchError, option, shell_command

SHELL_HELP: Final = "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given."
STDIO: Final = ("files", "combined", "none")
MEMORY_CGROUP: Final = ("auto", "off", "require")


@define
class LocalOptions:
    """Options of the executor ``local``."""

    shell: str = option("", SHELL_HELP, metavar="SHELL")
    stdio: str = option(
        "files", "Where output goes: two files, combined (both into the .o file) or none.", metavar="MODE"
    )
    memory_cgroup: str = option(
        "auto",
        "Control groups that hold attempts to their memory with --enforce-limits: auto (where they can be made), off "
        "or require.",
        metavar="MODE",
    )

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for invalid values, before any job is run."""
        for name, modes in (("stdio", STDIO), ("memory_cgroup", MEMORY_CGROUP)):
            if (value := getattr(self, name)) not in modes:
                raise ConfigError(f"{name} of executor local is {value!r}; it must be one of {', '.join(modes)}")
        try:
            shell_command(self.shell)
        except LaunchError as error:
            raise ConfigError(f"shell of executor local: {error}") from None
