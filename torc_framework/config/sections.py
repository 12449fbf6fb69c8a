"""Declarations of all sections of the configuration except ``[server]``, which the server declares."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attrs import field, frozen

from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.settings import LOG_LEVELS, setting
from torc_framework.server.settings import ServerSettings

FORMATS: Final = ("table", "json")
"""Output formats."""


def _check_url(text: str) -> None:
    """Raise `ValueError` for a text that is not the URL of a server."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError("expected the URL of a Torc server, such as http://localhost:8080/torc-service/v1")


def _check_base_path(text: str) -> None:
    """Raise `ValueError` for a text that is not the beginning of a URL's path."""
    if not re.fullmatch(r"(?:/[A-Za-z0-9._~-]+)*/?", text):
        raise ValueError("expected a path such as /node/n1/8090")


def _check_frame_ancestors(text: str) -> None:
    """Raise `ValueError` for a text that is not the value of frame-ancestors (Content Security Policy Level 3)."""
    source = r"(?:'self'|[\w.:/*\[\]-]+)"
    if not re.fullmatch(rf"'none'|{source}(?: {source})*", text, re.ASCII):
        raise ValueError("expected 'none', 'self', or sites such as https://ondemand.example.org")


@frozen(eq=False, repr=False)
class RunSection:
    """Defaults of the flags of ``torc run``."""

    executor: str = setting("local", "Executor that runs the jobs.")
    poll_interval: float = setting(
        5.0, "Accepted for compatibility; a runner is woken and never polls.", unit="s", low=0
    )
    max_parallel_jobs: int | None = setting(None, "At most this many jobs at once; resources are ignored.", low=1)
    num_cpus: int | None = setting(None, "CPUs to offer; by default all.", low=1)
    memory_gb: float | None = setting(None, "Memory to offer; by default all.", unit="GiB", low=0)
    num_gpus: int | None = setting(None, "GPUs to offer; by default all.", low=0)
    output_dir: Path = setting(Path("output"), "Folder for logs.")
    enforce_limits: bool = setting(False, "Kill jobs that use more memory than they asked for.")
    term_lead_s: float = setting(30.0, "Time between SIGTERM and SIGKILL.", unit="s", low=0)


@frozen(eq=False, repr=False)
class SlurmSection:
    """Defaults of the commands that submit to Slurm."""

    poll_interval: int = setting(30, "Accepted for compatibility; a runner is woken and never polls.", unit="s", low=1)
    keep_submission_scripts: bool = setting(False, "Keep the scripts that were submitted.")
    strict_scheduler_match: bool = setting(False, "Runners take no jobs of other schedulers.")


@frozen(eq=False, repr=False)
class ProfileOverride:
    """Changes of a user to a profile of any origin."""

    default_account: str | None = setting(None, "Account that is charged.")


@frozen(eq=False, repr=False)
class HpcSection:
    """Profiles of clusters."""

    default_account: str | None = setting(None, "Account that is charged when no other is named.")
    profile_overrides: dict[str, ProfileOverride] = field(factory=dict)
    custom_profiles: dict[str, HpcProfile] = field(factory=dict)


@frozen(eq=False, repr=False)
class WatchSection:
    """Defaults of ``torc watch``."""

    poll_interval: float = setting(60.0, "Time between two queries of the workflow.", unit="s", low=0)
    max_retries: int = setting(3, "Most recoveries of one workflow.", low=0)
    retry_cooldown: float = setting(0.0, "Pause before a recovery.", unit="s", low=0)
    model: str | None = setting(None, "Language model that is asked about failures.")
    cache_path: Path | None = setting(None, "File that keeps the model's answers.")
    rate_limit_per_minute: int = setting(20, "Most questions to the model.", unit="per minute", low=1)
    audit_log_path: Path | None = setting(None, "File that records questions and answers.")
    api_key: str | None = setting(None, "Key of the model's service.", secret=True)


@frozen(eq=False, repr=False)
class AiSection:
    """Settings of verdicts of plugins and agents on failures that no rule covers."""

    agent: str = setting("claude", "Agent that is asked when one is wanted: claude, copilot or custom.")
    command: tuple[str, ...] = setting(
        (),
        "Command line of the agent custom; {prompt}, {mcp_config} and {workflow_id} are replaced by their values; "
        "without {prompt} the prompt is written to its standard input.",
    )
    timeout_s: float = setting(600.0, "Most time that an agent may take.", unit="s", low=1)
    max_output_bytes: int = setting(1_000_000, "Most that an agent may write.", unit="bytes", low=1000)
    min_confidence: float = setting(0.8, "Verdicts with less confidence are left to a person.", low=0, high=1)
    max_attempts: int = setting(3, "Most attempts of a job, in all, that plugins and agents start.", low=1)


@frozen(eq=False, repr=False)
class ClientSection:
    """Settings of the program ``torc``."""

    api_url: str | None = setting(
        None,
        "Base URL of the server; without it commands start a server of their own.",
        variables=("TORC_API_URL",),
        check=_check_url,
    )
    keep_server: bool = setting(
        False,
        "Commands without a configured server start one that stays, and share it, instead of one for each.",
        variables=("TORC_KEEP_SERVER",),
    )
    keep_server_minutes: float = setting(
        10.0, "Time without use after which a server that stays ends.", unit="min", low=0.01
    )
    format: str = setting("table", "Output format.", choices=FORMATS)
    log_level: str = setting("warn", "How much is logged to standard error.", choices=LOG_LEVELS)
    username: str | None = setting(
        None,
        "User name for basic authentication; your login name if there is only a password.",
        variables=("TORC_USERNAME",),
    )
    tls_ca: Path | None = setting(
        None, "File or folder with certificates to trust besides the system's.", variables=("TORC_TLS_CA",)
    )
    run: RunSection = field(factory=RunSection)
    slurm: SlurmSection = field(factory=SlurmSection)
    hpc: HpcSection = field(factory=HpcSection)
    watch: WatchSection = field(factory=WatchSection)
    ai: AiSection = field(factory=AiSection)


@frozen(eq=False, repr=False)
class DashSection:
    """Settings of the dashboard, ``torc-dash``."""

    host: str = setting("127.0.0.1", "Name or address to listen on.", metavar="HOST")
    port: int = setting(
        8090, "Port to listen on; 0 takes a free one.", low=0, high=65_535, flags=("-p", "--port"), metavar="PORT"
    )
    api_url: str | None = setting(
        None,
        "Base URL of the server; by default that of the client, else http://localhost:8080/torc-service/v1.",
        flags=("-a", "--api-url", "--url"),
        metavar="URL",
        check=_check_url,
    )
    torc_bin: str = setting("torc", "The program torc, which carries out commands.", metavar="PATH")
    torc_server_bin: str = setting("torc-server", "The program torc-server, which --standalone starts.", metavar="PATH")
    standalone: bool = setting(False, "Start a server along with the dashboard; it ends with the dashboard.")
    server_port: int = setting(0, "Port of that server; 0 takes a free one.", low=0, high=65_535, metavar="PORT")
    database: str | None = setting(
        None,
        "Database of that server; by default the one that commands use without a server.",
        flags=("-d", "--database"),
        metavar="PATH",
    )
    completion_check_interval_secs: float = setting(
        5.0, "Accepted for compatibility; dependents are unblocked at once.", unit="s", low=0
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "Further host names that browsers may use for the dashboard, such as that of a proxy; repeat, or separate by "
        "commas.",
        flags=("--allowed-host",),
        metavar="NAME",
    )
    base_path: str | None = setting(
        None,
        "Path that a proxy in front leaves before the dashboard's own, such as /node/n1/8090.",
        metavar="PATH",
        check=_check_base_path,
    )
    frame_ancestors: str = setting(
        "'none'",
        "Sites that may show the dashboard in a frame, as in a content security policy.",
        metavar="SITES",
        check=_check_frame_ancestors,
    )
    session_hours: float = setting(
        12.0, "Time without use after which a reader has to log in again.", unit="h", low=0.01
    )


@frozen(eq=False, repr=False)
class Sections:
    """The whole configuration, without the options of executors and recovery policies, which plugins declare."""

    client: ClientSection = field(factory=ClientSection)
    server: ServerSettings = field(factory=ServerSettings)
    dash: DashSection = field(factory=DashSection)
