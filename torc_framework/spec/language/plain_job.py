"""The entry of a job that has only the plain fields, which is read faster and in less memory than a `JobSpec`."""

from typing import ClassVar

import msgspec

from torc_framework.models.exits import CleanExit
from torc_framework.models.stdio import StdioMode
from torc_framework.spec.language.model import Names, Text


class PlainJob(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A job without files, user data, parameters, patterns and options of executors; its fields are as in `JobSpec`."""

    name: Text
    command: Text
    depends_on: Names = None
    resource_requirements: Text | None = None
    failure_handler: Text | None = None
    scheduler: Text | None = None
    executor: Text | None = None
    shell: Text | None = None
    stdio: StdioMode | None = None
    delete_stdio_on_success: bool | None = None
    cancel_on_blocking_job_failure: bool = True
    supports_termination: bool = False
    clean_exit_after_stop: CleanExit = "auto"
    depends_on_regexes: ClassVar[None] = None
