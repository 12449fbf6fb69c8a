"""Settings by dotted key, each with the place it comes from."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from attrs import frozen

from torc_framework.errors import ConfigError

SYSTEM_FILE: Final = Path("/etc/torc/config.toml")
_SHORT_NAMES: Final = MappingProxyType({"client.api_url": "TORC_API_URL"})
"""Variables that a key has beside its regular one; the regular one wins."""
_TRUTH: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_T = TypeVar("_T", str, int, float, bool)


@frozen
class Setting:
    """A value and where it was written."""

    value: Any
    origin: str


def config_files(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> list[Path]:
    """Return the configuration files that exist, the weakest first."""
    from platformdirs import user_config_path

    candidates = (SYSTEM_FILE, user_config_path("torc") / "config.toml", (folder or Path.cwd()) / "torc.toml")
    return [path for path in candidates if path.is_file()]


def default_database(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the database of the embedded server: ``TORC_DATABASE``, else ``torc.db`` in the user's data folder."""
    if given := environ.get("TORC_DATABASE"):
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("torc") / "torc.db"


class Config:
    """Settings of files and environment."""

    def __init__(self, environ: Mapping[str, str], layers: list[tuple[Path, Mapping[str, Any]]]) -> None:
        self._environ = environ
        self._layers = layers

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> "Config":
        """Read the files.

        Raises:
            ConfigError: a file cannot be read or is no TOML.
        """
        return cls(environ, [(path, _read(path)) for path in reversed(config_files(environ, folder))])

    def get(self, key: str, kind: type[_T]) -> _T | None:
        """Return the setting of a dotted key as a ``kind``, or None if it is set nowhere.

        Raises:
            ConfigError: the value is no ``kind``; names its origin.
        """
        setting = self._find(key)
        return None if setting is None else _convert(key, setting, kind)

    def _find(self, key: str) -> Setting | None:
        for variable in ("TORC_" + key.upper().replace(".", "__").replace("-", "_"), _SHORT_NAMES.get(key)):
            if variable and self._environ.get(variable):
                return Setting(self._environ[variable], f"environment variable {variable}")
        for path, tree in self._layers:
            value: Any = tree
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None:
                return Setting(value, str(path))
        return None


def _read(path: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error}") from error


def _convert(key: str, setting: Setting, kind: type[_T]) -> _T:
    spelled, reader = _KINDS[kind]
    try:
        value: _T = reader(str(setting.value).strip())
    except (KeyError, ValueError):
        raise ConfigError(f"{setting.origin}: {key} is {setting.value!r}; expected {spelled}") from None
    return value


def _whole(text: str) -> int:
    return int(text.removesuffix(".0"))


def _truth(text: str) -> bool:
    return _TRUTH[text.lower()]


_KINDS: Final[Mapping[type[Any], tuple[str, Callable[[str], Any]]]] = {
    bool: ("true or false", _truth),
    int: ("a whole number", _whole),
    float: ("a number", float),
    str: ("a text", str),
}
"""How each kind of setting is called and read."""
