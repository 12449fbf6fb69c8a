"""What one call of ``torc`` knows: its options, its settings, its server, its plugins."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from torc_framework.errors import ApiError, ConfigError, ServerUnreachableError, UserError
from torc_framework.system.user import user_name
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.config import Config
    from torc_framework.embedded import EmbeddedServer
    from torc_framework.executors import Executor
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
"""Names of log levels that people may give, in Python's words."""


class Session:
    """Options of the call, and everything that is made from them when first asked for.

    Use it as a context: the embedded server, if one was started, ends with it.
    """

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._config: Config | None = None
        self._client: TorcClient | None = None
        self._server: EmbeddedServer | None = None
        self._plugins: PluginManager | None = None
        self.executor_options: dict[str, Any] = {}
        """Values of the chosen executor's own flags, by option name."""
        self.policy_options: dict[str, Any] = {}
        """Values of the flags of recovery policies, by option name."""
        self.skips_untrusted = False
        """The command only looks: plugins of folders that are not trusted are left out."""
        self.is_completing = False
        """A shell asks what may come next: nothing is said but the answer."""

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()
        if self._server is not None:
            has_failed = isinstance(error, ServerUnreachableError) and self._server.has_failed()
            self._server.close()
            if error is not None and has_failed and self._server.last_words:
                error.args = (f"the embedded server has ended: {self._server.last_words}",)
            if isinstance(error, ApiError) and error.status == 500 and (log := self._server.keep_log()):
                error.add_note(f"what the embedded server wrote about it is in {log}")

    # --- options ----------------------------------------------------------------------------------

    def set_option(self, name: str, value: Any) -> None:
        """Note an option of the program; the last one given wins.

        Raises:
            UserError: the value is none of those allowed.
        """
        if name == "format_":
            _one_of("--format", value, FORMATS)
        if name == "log_level":
            _one_of("--log-level", value, LEVELS)
        if name == "disable_plugin":
            value = [*self._options.get(name, ()), *value]
        self._options[name] = value

    @property
    def config(self) -> "Config":
        """Settings of files and environment."""
        if self._config is None:
            from torc_framework.config import Config

            self._config = Config.load()
        return self._config

    @property
    def wants_json(self) -> bool:
        """The output is to be one JSON document."""
        if "format_" in self._options:
            return bool(self._options["format_"] == "json")
        try:
            return self.config.client.format == "json"
        except ConfigError:
            return False  # the error is reported by whoever needs the configuration for real

    @property
    def wants_pager(self) -> bool:
        """Long lists may be shown page by page."""
        return not self._options.get("no_pager")

    @property
    def debug(self) -> bool:
        """Errors show their traceback."""
        return bool(self._options.get("debug"))

    @property
    def log_level(self) -> str:
        """Name of the log level, in Python's words."""
        return LEVELS[self._options.get("log_level") or self.config.client.log_level]

    # --- the server -------------------------------------------------------------------------------

    def start_server(self) -> None:
        """Start the embedded server if none is configured; return without waiting for it.

        Raises:
            UserError: a URL and a database were given together.
        """
        if self._server is not None or self._client is not None:
            return
        database = self._options.get("database")
        if self.url is not None:
            if database is not None:
                raise UserError(
                    "--database is for the embedded server, but --url, TORC_API_URL or a file names a server"
                )
            return
        from torc_framework.config import database_location
        from torc_framework.embedded import EmbeddedServer

        self._server = EmbeddedServer(database_location(database) if database else _own_database())
        self._server.start()

    @property
    def url(self) -> str | None:
        """URL of the configured server; None asks for an embedded one."""
        return self._options.get("url") or self.config.client.api_url

    @property
    def client(self) -> "TorcClient":
        """The client of the configured or embedded server; waits until the latter listens."""
        if self._client is None:
            from torc_framework.client import TorcClient

            self.start_server()
            if self._server is not None:
                self._client = TorcClient(self._server.url)
            else:
                username, password, password_file = self._credentials()
                self._client = TorcClient(
                    self.url or "",
                    username=username,
                    password=password,
                    password_file=password_file,
                    tls_ca=self.config.client.tls_ca,
                )
        return self._client

    def _credentials(self) -> tuple[str | None, str | None, str | None]:
        """Return name, password and password file of the person; the password is asked for if need be and possible."""
        username = self._username
        password = self._options.get("password") or os.environ.get("TORC_PASSWORD") or None
        file = None if password else os.environ.get("TORC_PASSWORD_FILE") or None
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
        """Name of the person, as the server knows it."""
        return self._username or user_name()

    # --- plugins ----------------------------------------------------------------------------------

    def plugins(self, project_dir: Path | None = None, *, skip_untrusted: bool = False) -> "PluginManager":
        """Return the plugins, imported at the first call.

        Args:
            project_dir: Folder of the spec, if there is one.
            skip_untrusted: Go on without the plugins of folders that are not trusted, and say so: for commands that
                only look.

        Raises:
            UserError: a folder is not trusted, and nobody is there to ask.
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
            require_trust(self._plugins.refused_folders)  # the files changed while the person looked at them
        return self._plugins

    def executors(self) -> "Mapping[str, type[Executor]]":
        """Return the executors of the plugins, by name, without those of folders that are not trusted."""
        return self.plugins(skip_untrusted=True).executors()

    def _load_plugins(self, project_dir: Path | None) -> "PluginManager":
        from torc_framework.plugins.manager import PluginManager

        return PluginManager.load(project_dir, disabled=self._options.get("disable_plugin", ()))

    def _warn_of_missing_plugins(self) -> None:
        if self._plugins is not None and not self.is_completing:
            from torc_framework.cli.shared.plugin_trust import warn_of_missing_plugins

            warn_of_missing_plugins(self._plugins.refused_folders)

    def _show_log(self) -> None:
        """Send the log's important lines to standard error."""
        import logging

        handler = logging.StreamHandler()
        handler.setLevel(self.log_level)  # not the logger's: a runner's log file has a level of its own
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logger = logging.getLogger("torc_framework")
        logger.handlers = [handler]
        logger.setLevel(min(logger.getEffectiveLevel(), handler.level))


def _own_database() -> Path | str:
    """Return the database of calls that name none; where it is the user's own place, only the user may read it."""
    import contextlib

    from torc_framework.config import default_database
    from torc_framework.system.private_files import make_private

    place = default_database()
    if isinstance(place, Path) and not os.environ.get("TORC_DATABASE"):
        with contextlib.suppress(OSError):  # the server says what is wrong with the place
            make_private(place, "-wal", "-shm")
    return place


def _one_of(what: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise UserError(f"{what} is {value!r}; expected one of {', '.join(allowed)}")
