"""The session of one call of ``torc``: its options, its settings, its client and server, its plugins."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from torc_framework.errors import ApiError, ConfigError, ServerUnreachableError, UserError
from torc_framework.system.environment import variable
from torc_framework.system.user import user_name
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    import typer

    from torc_framework.client import TorcClient
    from torc_framework.config import Config
    from torc_framework.embedded.process import EarlyServerProcess
    from torc_framework.embedded.server import EmbeddedServer
    from torc_framework.executors import Executor
    from torc_framework.in_process import InProcessReads
    from torc_framework.kept_server.kept_server import KeptServer
    from torc_framework.plugins.manager import PluginManager

FORMATS: Final = ("table", "json")
LEVELS: Final = {
    "error": "ERROR",
    "warn": "WARNING",
    "warning": "WARNING",
    "info": "INFO",
    "debug": "DEBUG",
    "trace": "DEBUG",
}
"""Log levels of the command line and the configuration, with the level of `logging` that each stands for."""


class Session:
    """Options of the call, and the objects that are made from them at their first use.

    It is a context manager: leaving it closes the client and stops the embedded server, if one was started.

    Args:
        early: The process of a server that was started early.
    """

    def __init__(self, early: "EarlyServerProcess | None" = None) -> None:
        self._early = early
        self._options: dict[str, Any] = {}
        self._config: Config | None = None
        self._client: TorcClient | None = None
        self._server: EmbeddedServer | None = None
        self._kept_server: KeptServer | None = None
        self._wants_kept_server = True
        self._plugins: PluginManager | None = None
        self.executor_options: dict[str, Any] = {}
        """Values of the chosen executor's own flags, by option name."""
        self.policy_options: dict[str, Any] = {}
        """Values of the flags of recovery policies, by option name."""
        self.skips_untrusted = False
        """The command changes nothing, so that plugins of folders that are not trusted are left out, with a warning."""
        self.reads_only = False
        """The command changes nothing on the server, and needs none if a database file can be read."""
        self.is_completing = False
        """A shell asks for completions: nothing but these may be printed."""

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._early is not None:
            self._early.discard()
        if self._client is not None:
            self._client.close()
        if self._kept_server is not None:
            self._kept_server.close()
            if isinstance(error, ServerUnreachableError) or (isinstance(error, ApiError) and error.status == 500):
                error.add_note(f"what the server that stays wrote is in {self._kept_server.log}")
        if self._server is not None:
            has_failed = isinstance(error, ServerUnreachableError) and self._server.has_failed()
            self._server.close()
            if error is not None and has_failed and self._server.last_error_line:
                error.args = (f"the embedded server has ended: {self._server.last_error_line}",)
            if isinstance(error, ApiError) and error.status == 500 and (log := self._server.keep_log()):
                error.add_note(f"what the embedded server wrote about it is in {log}")

    # --- options ----------------------------------------------------------------------------------

    def set_option(self, name: str, value: Any) -> None:
        """Store a global option; the last value given wins.

        Raises:
            UserError: the value is not an allowed one.
        """
        if name == "format_":
            _check_choice("--format", value, FORMATS)
        if name == "log_level":
            _check_choice("--log-level", value, LEVELS)
        if name == "disable_plugin":
            value = [*self._options.get(name, ()), *value]
        self._options[name] = value

    def has_option(self, name: str) -> bool:
        """Return whether the call has a global option."""
        return name in self._options

    @property
    def config(self) -> "Config":
        """The settings of configuration files and environment."""
        if self._config is None:
            from torc_framework.config import Config

            self._config = Config.load()
        return self._config

    @property
    def wants_json(self) -> bool:
        """Whether the output is one JSON document."""
        if "format_" in self._options:
            return bool(self._options["format_"] == "json")
        try:
            return self.config.client.format == "json"
        except ConfigError:
            return False  # the command that reads the configuration reports the error

    @property
    def wants_pager(self) -> bool:
        """Whether long lists may be shown in a pager."""
        return not self._options.get("no_pager")

    @property
    def debug(self) -> bool:
        """Whether errors are printed with their traceback."""
        return bool(self._options.get("debug"))

    @property
    def log_level(self) -> str:
        """The name of the log level in `logging`."""
        return LEVELS[self._options.get("log_level") or self.config.client.log_level]

    # --- the server -------------------------------------------------------------------------------

    def start_server(self) -> None:
        """Start the embedded or the kept server if no server is configured; return without waiting for it.

        Raises:
            UserError: a URL and a database were given together.
        """
        if self._server is not None or self._kept_server is not None or self._client is not None:
            return
        database = self._database()
        if database is not None and not self._uses_kept_server(database):
            self._start_server(database)

    def _uses_kept_server(self, database: "Path | str") -> bool:
        """Find or start the kept server if it is wanted for this database; return whether it is used.

        An embedded server makes a database that does not exist yet.
        """
        is_wanted = self._wants_kept_server and self.config.client.keep_server and not self.is_completing
        if not is_wanted or not isinstance(database, Path) or not database.is_file():
            return False
        from torc_framework.kept_server.kept_server import KeptServer, KeptServerError

        server = KeptServer(database, idle_minutes=self.config.client.keep_server_minutes)
        try:
            server.start()
        except (ConfigError, KeptServerError) as error:
            server.close()
            self._leave_kept_server(error)
            return False
        self._kept_server = server
        return True

    def _kept_url(self) -> str | None:
        """Return the URL of the kept server when it answers; None if none is used."""
        from torc_framework.kept_server.kept_server import KeptServerError

        if self._kept_server is None:
            return None
        try:
            return self._kept_server.url
        except KeptServerError as error:
            self._kept_server.close()
            self._kept_server = None
            self._leave_kept_server(error)
            return None

    def _leave_kept_server(self, error: Exception) -> None:
        """Use no kept server in this call, with a warning that says why."""
        self._wants_kept_server = False
        print(one_line(f"Warning: the server that stays is not used: {error}"), file=sys.stderr)

    def _start_server(self, database: "Path | str") -> "EmbeddedServer":
        from torc_framework.embedded.server import EmbeddedServer

        early, self._early = self._early, None
        self._server = EmbeddedServer(database, early=early)
        self._server.start()
        return self._server

    def _database(self) -> "Path | str | None":
        """Return the database that is used without a server; None if a server is configured.

        Raises:
            UserError: a URL and a database were given together.
        """
        if self.url is None:
            return self.own_database
        if self.has_option("database"):
            raise UserError("--database is for the embedded server, but --url, TORC_API_URL or a file names a server")
        return None

    @property
    def own_database(self) -> "Path | str":
        """The database of a server that the command starts for itself."""
        from torc_framework.config import database_location

        given = self._options.get("database")
        return database_location(given) if given else _own_database()

    @property
    def url(self) -> str | None:
        """The URL of the configured server; None if the embedded server is used."""
        return self._options.get("url") or self.config.client.api_url

    @property
    def client(self) -> "TorcClient":
        """The client of the configured, the kept or the embedded server; the first use waits until the server listens.

        A command that only reads has no server where it can read the database itself, unless there is a kept one.
        """
        if self._client is None:
            database = self._database()
            self._client = self._configured_client() if database is None else self._local_client(database)
        return self._client

    def _local_client(self, database: "Path | str") -> "TorcClient":
        """Return the client of a server that is not configured, or of the database itself."""
        from torc_framework.client import TorcClient

        if self._server is None and (self._kept_server is not None or self._uses_kept_server(database)):
            url = self._kept_url()
            if url is not None:
                return TorcClient(url)
        if self.reads_only and self._server is None and (reads := self._reads(database)) is not None:
            return TorcClient.over(reads)
        server = self._server or self._start_server(database)
        try:
            return TorcClient(server.url)
        except ServerUnreachableError:
            self._server = None  # another try starts another
            raise

    def _configured_client(self) -> "TorcClient":
        """Return the client of the configured server.

        Raises:
            UserError: the server has another major version of the API.
        """
        from torc_framework.client import TorcClient

        username, password, password_file = self._credentials()
        client = TorcClient(
            self.url or "",
            username=username,
            password=password,
            password_file=password_file,
            tls_ca=self.config.client.tls_ca,
        )
        self._check_version(client)
        return client

    def _reads(self, database: "Path | str") -> "InProcessReads | None":
        """Return what reads the database in this process; None if a server has to."""
        if not isinstance(database, Path):
            return None
        from torc_framework.in_process import InProcessReads, open_to_read

        found = open_to_read(database)
        return None if found is None else InProcessReads(found, lambda: self._start_server(database).url)

    def _check_version(self, client: "TorcClient") -> None:
        """Warn if the server's version differs in a way that matters; a server that does not answer is no error here.

        Raises:
            UserError: the server has another major version of the API.
        """
        if self._options.get("skip_version_check") or self.is_completing:
            return
        from torc_framework import __version__
        from torc_framework.models.api_version import compare_versions

        try:
            difference = compare_versions(client.version(), __version__)
        except (ApiError, ServerUnreachableError):
            return  # the first request of the command reports it
        if difference is None:
            return
        if difference.is_incompatible:
            client.close()
            raise UserError(difference.message)
        print(one_line(f"Warning: {difference.message}"), file=sys.stderr)

    def _credentials(self) -> tuple[str | None, str | None, str | None]:
        """Return the user's name, password and password file; a terminal is asked for a password that is not set."""
        username = self._username
        password = self._options.get("password") or os.environ.get("TORC_PASSWORD") or None
        file = None if password else variable("TORC_PASSWORD_FILE")
        is_known = password is not None or file is not None
        if self._options.get("prompt_password") or (username and not is_known and sys.stdin.isatty()):
            import getpass

            username = username or user_name()
            password = getpass.getpass(f"Password for '{one_line(username)}': ")
            is_known = True
        if is_known and username is None:
            username = user_name()
        return username, password, file

    @property
    def _username(self) -> str | None:
        from urllib.parse import unquote, urlsplit

        given = self._options.get("username") or self.config.client.username
        return given or unquote(urlsplit(self.url or "").username or "") or None

    @property
    def user(self) -> str:
        """The user's name on the server."""
        return self._username or user_name()

    # --- plugins ----------------------------------------------------------------------------------

    def plugins(self, project_dir: Path | None = None, *, skip_untrusted: bool = False) -> "PluginManager":
        """Return the plugins, imported at the first call.

        Args:
            project_dir: Folder of the spec, if there is one.
            skip_untrusted: Leave the plugins of folders that are not trusted out, with a warning. For commands that
                change nothing.

        Raises:
            UserError: a folder is not trusted, and the user refused or there is no terminal to ask at.
        """
        if self._plugins is None:
            self._show_log()
            self._plugins = self._load_plugins(project_dir)
            if self._plugins.refused_folders and (skip_untrusted or self.skips_untrusted):
                self._warn_of_missing_plugins()
        if self._plugins.refused_folders and not (skip_untrusted or self.skips_untrusted):
            from torc_framework.cli.shared.plugin_trust import require_trust

            require_trust(self._plugins.refused_folders)
            self._plugins = self._load_plugins(project_dir)
            require_trust(self._plugins.refused_folders)  # the files may have changed during the question
        return self._plugins

    def executors(self) -> "Mapping[str, type[Executor]]":
        """Return the executors of the plugins, by name, without those of folders that are not trusted."""
        return self.plugins(skip_untrusted=True).lazy_executors()

    @property
    def disabled_plugins(self) -> frozenset[str]:
        """The names of plugins that the call or the environment disables."""
        from torc_framework.plugins.discovery import disabled_by_environment

        return disabled_by_environment().union(self._options.get("disable_plugin", ()))

    def _load_plugins(self, project_dir: Path | None) -> "PluginManager":
        from torc_framework.plugins.manager import PluginManager

        return PluginManager.load(project_dir, disabled=self._options.get("disable_plugin", ()))

    def _warn_of_missing_plugins(self) -> None:
        if self._plugins is not None and not self.is_completing:
            from torc_framework.cli.shared.plugin_trust import warn_of_missing_plugins

            warn_of_missing_plugins(self._plugins.refused_folders)

    def _show_log(self) -> None:
        """Send log lines of at least the chosen level to standard error."""
        import logging

        handler = logging.StreamHandler()
        handler.setLevel(self.log_level)  # not the logger's: the log file of a runner has its own level
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logger = logging.getLogger("torc_framework")
        logger.handlers = [handler]
        logger.setLevel(min(logger.getEffectiveLevel(), handler.level))


def session_of(ctx: "typer.Context") -> Session:
    """Return the session of the call."""
    session = ctx.find_root().obj
    assert isinstance(session, Session)
    return session


def _own_database() -> Path | str:
    """Return the default database; one in the user's own data folder is made readable by the user alone."""
    import contextlib

    from torc_framework.config import default_database
    from torc_framework.system.private_files import make_private

    place = default_database()
    if isinstance(place, Path) and not os.environ.get("TORC_DATABASE"):
        with contextlib.suppress(OSError):  # the server reports a location that cannot be used
            make_private(place, "-wal", "-shm")
    return place


def _check_choice(what: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise UserError(f"{what} is {value!r}; expected one of {', '.join(allowed)}")
