"""The configuration of one process, made of the layers files, environment and flags, and checked as a whole."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve, fields, frozen

from torc_framework.config.files import config_files, line_of, read_file
from torc_framework.config.section_values import ValueProblem, Values, build, flatten
from torc_framework.config.sections import Sections
from torc_framework.errors import ConfigError, nearest, suggestion
from torc_framework.models.settings import (
    Setting,
    SettingEntry,
    field_type,
    from_file,
    from_text,
    section_of,
    setting_entries,
    setting_of,
)
from torc_framework.system.environment import EMPTY, variable
from torc_framework.system.user import expand_home, user_folder

_PREFIX: Final = "TORC_"
DECLARED_BY_PLUGINS: Final = {"executor": "executor", "recovery": "recovery policy"}
"""Sections whose subsections are named after executors or policies that plugins declare; and the word for these."""


@frozen
class ConfigFinding:
    """One error in the configuration.

    Attributes:
        origin: A file, or the words "environment variable NAME".
        line: Line of the file, from 1; None if it is not known.
        key: Dotted key.
    """

    origin: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        """Return it as one line."""
        place = self.origin if self.line is None else f"{self.origin}:{self.line}"
        return f"{place}: {self.key} {self.message}" if self.key else f"{place}: {self.message}"


class WrongConfigError(ConfigError):
    """Raised for wrong keys or values; the message has one line for each."""

    def __init__(self, findings: list[ConfigFinding]) -> None:
        self.findings = findings
        super().__init__("\n".join(map(str, findings)))


def database_location(text: str) -> Path | str:
    """Return the path of the file that a text names, or the text itself if it is a URL."""
    return text if re.match("[a-z+]{2,}:", text) else expand_home(text)


def default_database(environ: Mapping[str, str] = os.environ) -> Path | str:
    """Return the database of the embedded server: ``TORC_DATABASE``, else ``torc.db`` in the user's data folder."""
    if given := variable("TORC_DATABASE", environ):
        return database_location(given)
    return user_folder("data") / "torc.db"


@frozen
class _UnconvertedOption:
    """A value for an option that a plugin declares, not yet converted."""

    section: str
    owner: str
    name: str
    value: Any
    origin: str
    line: int | None
    is_text: bool


class Config:
    """The settings of a process, and the source of each.

    Attributes:
        files: The files that were read, lowest precedence first.
    """

    def __init__(
        self,
        sections: Sections,
        *,
        files: Sequence[Path] = (),
        origins: Mapping[tuple[str, ...], str] | None = None,
        options: Sequence[_UnconvertedOption] = (),
    ) -> None:
        self.sections = sections
        self.client = sections.client
        self.server = sections.server
        self.dash = sections.dash
        self.files = tuple(files)
        self._origins = origins or {}
        self._options = options

    @classmethod
    def load(
        cls, environ: Mapping[str, str] = os.environ, folder: Path | None = None, flags: Values | None = None
    ) -> "Config":
        """Read files and environment; ``flags`` are values, by path, that win over both.

        Raises:
            ConfigError: a file cannot be read, or keys or values are wrong.
        """
        config, findings = cls.examine(environ, folder, flags)
        if findings:
            raise WrongConfigError(findings)
        return config

    @classmethod
    def examine(
        cls, environ: Mapping[str, str] = os.environ, folder: Path | None = None, flags: Values | None = None
    ) -> "tuple[Config, list[ConfigFinding]]":
        """Return the configuration without its wrong settings, and the errors in these.

        Raises:
            ConfigError: a file cannot be read.
        """
        reading = _LayerReader()
        found = config_files(folder, environ)
        for path in found:
            reading.add_file(path)
        reading.add_environment(environ)
        reading.values |= flags or {}
        reading.origins |= dict.fromkeys(flags or {}, "flag")
        problems: list[ValueProblem] = []
        sections = build(Sections, reading.values, (), problems)
        assert not problems, "every setting outside of lists has a default"
        config = cls(sections, files=found, origins=reading.origins, options=reading.options)
        return config, reading.findings

    def origin(self, leaf: SettingEntry) -> str:
        """Return the source of a setting: a file, a variable, "flag" or "default"."""
        return self._origins.get(leaf.path, "default")

    def value(self, leaf: SettingEntry) -> Any:
        """Return the value of a setting."""
        value: Any = self.sections
        for name in leaf.path:
            value = value[name] if isinstance(value, dict) else getattr(value, name)
        return value

    def settings(self) -> Iterator[SettingEntry]:
        """Yield every setting; those of sections that the user names with these names in the path."""
        for leaf in setting_entries(Sections):
            if "NAME" not in leaf.path:
                yield leaf
                continue
            at = leaf.path.index("NAME")
            named = self.value(evolve(leaf, path=leaf.path[:at]))
            yield from (evolve(leaf, path=(*leaf.path[:at], name, *leaf.path[at + 1 :])) for name in named)

    # --- what plugins declare ---------------------------------------------------------------------

    def owners(self, section: str) -> list[str]:
        """Return the names of executors or policies with options in a section, with dashes as underscores."""
        return sorted({option.owner for option in self._options if option.section == section})

    def options(self) -> list[tuple[tuple[str, ...], Any, str]]:
        """Return path, unconverted value and source of each option of a plugin that is set."""
        found = {(option.section, option.owner, option.name): option for option in self._options}
        return [(path, option.value, option.origin) for path, option in sorted(found.items())]

    def plugin_options(self, section: str, owner: str, kinds: Mapping[str, type[Any]]) -> dict[str, Any]:
        """Return the values that are set for the options of an executor or a recovery policy.

        Args:
            section: One of `DECLARED_BY_PLUGINS`.
            owner: Name of the executor, or of the policy's plugin.
            kinds: The type of each option, bool, int, float or str, by its name.

        Raises:
            ConfigError: an option is not known, or its value is of another kind.
        """
        found: dict[str, Any] = {}
        findings = []
        for option in self._options:
            if (option.section, option.owner) != (section, _as_key(owner)):
                continue
            key = f"{section}.{owner}.{option.name}"
            if option.name not in kinds:
                hint = suggestion(option.name, list(kinds))
                message = f"is not an option of this {DECLARED_BY_PLUGINS[section]}{hint}"
                findings.append(ConfigFinding(option.origin, option.line, key, message))
                continue
            try:
                read = from_text if option.is_text else from_file
                found[option.name] = read(kinds[option.name], _ANYTHING, option.value)
            except ValueError as error:
                findings.append(ConfigFinding(option.origin, option.line, key, f"is {option.value!r}; {error}"))
        if findings:
            raise WrongConfigError(findings)
        return found


_ANYTHING: Final = Setting("")


class _LayerReader:
    """Reads the layers of settings; each overrides those before it."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.origins: dict[tuple[str, ...], str] = {}
        self.options: list[_UnconvertedOption] = []
        self.findings: list[ConfigFinding] = []

    def add_file(self, path: Path) -> None:
        """Add a file.

        Raises:
            ConfigError: it cannot be read.
        """
        tables = dict(read_file(path))
        declared = {section: tables.pop(section, {}) for section in DECLARED_BY_PLUGINS}
        problems: list[ValueProblem] = []
        values = flatten(Sections, tables, (), problems)
        for section, owners in declared.items():
            self._add_options(path, section, owners, problems)
        self.values |= values
        self.origins |= dict.fromkeys(values, str(path))
        for problem in problems:
            key = ".".join(problem.path)
            self.findings.append(ConfigFinding(str(path), line_of(path, problem.path), key, problem.message))

    def _add_options(self, path: Path, section: str, owners: Any, problems: list[ValueProblem]) -> None:
        if not isinstance(owners, Mapping):
            problems.append(ValueProblem((section,), f"is {owners!r}; expected a section"))
            return
        for owner, options in owners.items():
            if not isinstance(options, Mapping):
                problems.append(ValueProblem((section, owner), f"is {options!r}; expected a section"))
                continue
            for name, value in options.items():
                line, origin = line_of(path, (section, owner, name)), str(path)
                option = _UnconvertedOption(section, _as_key(owner), _as_key(name), value, origin, line, is_text=False)
                self.options.append(option)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Add environment variables; the regular variable of a key wins over its short ones."""
        for known in setting_entries(Sections):
            for short in known.facts.variables:
                if short in environ:
                    self._add_text(known, short, environ[short], is_ours=short.startswith(_PREFIX))
        for name, text in environ.items():
            path = tuple(name.removeprefix(_PREFIX).lower().split("__"))
            if not name.startswith(_PREFIX) or len(path) == 1:
                continue
            if path[0] in DECLARED_BY_PLUGINS and len(path) == 3:
                self._add_option(path, name, text)
            elif leaf := _leaf(path):
                self._add_text(leaf, name, text)
            else:
                names = [known.variable for known in setting_entries(Sections)]
                hint = suggestion(name, names) if nearest(name, names) else "; see 'torc config show'"
                self.findings.append(
                    ConfigFinding(_variable(name), None, "", f"sets no key of the configuration{hint}")
                )

    def _add_option(self, path: tuple[str, str, str], name: str, text: str) -> None:
        if text.strip():
            self.options.append(_UnconvertedOption(*path, text, _variable(name), None, is_text=True))
        else:
            self.findings.append(ConfigFinding(_variable(name), None, "", EMPTY))

    def _add_text(self, leaf: SettingEntry, name: str, text: str, *, is_ours: bool = True) -> None:
        if not text.strip() and leaf.kind != tuple[str, ...]:  # an empty list is a value
            if is_ours:
                self.findings.append(ConfigFinding(_variable(name), None, leaf.key, EMPTY))
            return
        try:
            value = from_text(leaf.kind, leaf.facts, text)
        except KeyError:
            message = "is a list of tables: it is set in a file"
        except ValueError as error:
            message = f"is {'set' if leaf.facts.secret else repr(text)}; {error}"
        else:
            self.values[leaf.path], self.origins[leaf.path] = value, _variable(name)
            return
        if is_ours:  # a variable without the prefix may belong to another program
            self.findings.append(ConfigFinding(_variable(name), None, leaf.key, message))


def _leaf(path: tuple[str, ...]) -> SettingEntry | None:
    """Return the setting at a path."""
    section: type[Any] | None = Sections
    parts = iter(path)
    for name in parts:
        attribute = next((found for found in fields(section) if found.name == name), None) if section else None
        if attribute is None:
            return None
        kind = field_type(attribute)
        section = section_of(kind)
        if section is None:
            facts = setting_of(attribute)
            return SettingEntry(path, kind, attribute.default, facts) if facts and next(parts, None) is None else None
        if section is not kind and next(parts, None) is None:  # the name that the user chose
            return None
    return None


def _as_key(name: str) -> str:
    return name.replace("-", "_")


def _variable(name: str) -> str:
    return f"environment variable {name}"
