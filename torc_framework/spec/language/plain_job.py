"""Entries of jobs that have only the plain fields, which are read faster and in less memory than a `JobSpec`."""

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


class _DefaultOptions(msgspec.Struct, gc=False):
    """The options of jobs that give none."""

    resource_requirements: ClassVar[None] = None
    failure_handler: ClassVar[None] = None
    scheduler: ClassVar[None] = None
    executor: ClassVar[None] = None
    shell: ClassVar[None] = None
    stdio: ClassVar[None] = None
    delete_stdio_on_success: ClassVar[None] = None
    cancel_on_blocking_job_failure: ClassVar[bool] = True
    supports_termination: ClassVar[bool] = False
    clean_exit_after_stop: ClassVar[CleanExit] = "auto"
    depends_on_regexes: ClassVar[None] = None


class JobWithoutOptions(_DefaultOptions, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A `PlainJob` with no more than these fields."""

    name: Text
    command: Text
    depends_on: Names = None


class BareJob(_DefaultOptions, gc=False):
    """A `JobWithoutOptions` of which ``depends_on`` is not read, which takes a third of the time."""

    name: Text
    command: Text
    depends_on: ClassVar[None] = None


ShortJob = PlainJob | JobWithoutOptions | BareJob
"""The entry of a job that has only plain fields."""
