"""YAML files other than workflow files, such as those of plugins, with the lines of their values."""

from pathlib import Path
from typing import Any

from attrs import frozen

from torc_framework.errors import ConfigError
from torc_framework.spec.language.findings import SpecPath
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.read_yaml import locate, parse_yaml


@frozen
class YamlFile:
    """A YAML file that was read.

    Attributes:
        path: The file, as given.
        text: Its text.
        value: Its value: JSON values.
    """

    path: str
    text: str
    value: Any

    def error(self, path: SpecPath, message: str, *, at_key: bool = False) -> ConfigError:
        """Return an error about a value that begins with file and line.

        Args:
            path: Keys and positions that lead from the document to the value.
            message: What is wrong.
            at_key: The error is at the path's last key, not at its value.
        """
        place = locate(self.text, [path]).find(path, at_key=at_key)
        return ConfigError(f"{self.path}:{place[0]}: {message}" if place else f"{self.path}: {message}")


def read_yaml_file(path: str, limit_bytes: int = 1024**2) -> YamlFile:
    """Return a file with one YAML document of plain data.

    Raises:
        ConfigError: the file cannot be read, is too large, or is no such document; the message names file and line.
    """
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(limit_bytes + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"{path}: the file cannot be read: {reason}") from None
    if len(raw) > limit_bytes:
        raise ConfigError(f"{path}: the file is larger than {limit_bytes // 1024} KiB")
    try:
        return YamlFile(path, text, parse_yaml(text))
    except ParseProblem as problem:
        where = f"{path}:{problem.place[0]}" if problem.place else path
        raise ConfigError(f"{where}: not valid YAML: {problem.message}") from None
