"""Plugins in a project's folder, ``torc_plugins/*.py``: the check of whether they may be imported, and their import.

Files of a folder are imported only if no other user could have written them (`torc_framework.system.ownership`) and the
user trusts the folder: ``torc plugins trust DIR`` stores the digest of the files. The files are read once; the digest
is that of the bytes that are executed, also if one file imports another, and compiled files are neither read nor
written.

Environment: ``TORC_TRUST`` holds trusted digests, separated by commas; it replaces the user's list.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from attrs import evolve, field, frozen

from torc_framework.errors import PluginError
from torc_framework.plugins.trusted_folders import TRUST_VARIABLE, trusted_digest, trusted_digests_of_environment
from torc_framework.system.ownership import other_writer
from torc_framework.text.terminal import one_line

PROJECT_FOLDER: Final = "torc_plugins"
"""Folder beside a spec whose ``*.py`` files are plugins."""
MAX_BYTES: Final = 16 << 20
"""Largest total size of the files of one folder."""


@frozen
class ProjectFolder:
    """The plugin files of one folder.

    Attributes:
        project: Folder that holds ``torc_plugins``.
        names: Names of the files.
        sources: Contents of the files by name; empty if other users could have written them.
        refusal: Reason why the files are not imported; None if they may be imported.
        remedy: What the user can do about it.
        can_be_trusted: ``torc plugins trust`` would permit the import.
        module: Name of the package whose modules the files are.
    """

    project: Path
    names: tuple[str, ...]
    sources: Mapping[str, bytes] = field(factory=dict, repr=False)
    refusal: str | None = None
    remedy: str = "copy what you need to a folder of yours, or take that right from others"
    can_be_trusted: bool = False
    module: str = PROJECT_FOLDER

    @property
    def path(self) -> Path:
        """The folder of the files."""
        return self.project / PROJECT_FOLDER

    @property
    def digest(self) -> str:
        """SHA-256 of names and contents, in hexadecimal digits."""
        import hashlib  # loads OpenSSL, which takes 3 ms; most commands see no such folder

        whole = hashlib.sha256()
        for name in sorted(self.sources):
            content = hashlib.sha256(self.sources[name]).hexdigest()
            whole.update(f"{content} {name}\0".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()

    @property
    def plugins(self) -> list[str]:
        """Names of the plugins: files whose names do not begin with an underscore."""
        return [name.removesuffix(".py") for name in self.names if not name.startswith("_")]

    @property
    def explanation(self) -> str:
        """The reason why the files are not imported, and the remedy, in one line."""
        files = ", ".join(self.names[:5]) + (", ..." if len(self.names) > 5 else "")
        switch = f"--disable-plugin {self.plugins[0]}" if len(self.plugins) == 1 else "--disable-plugin NAME"
        text = f"{self.path} ({files}) is not imported: {self.refusal}; {self.remedy} (or go on without: {switch})"
        return one_line(text)


def find_project_folders(project_dir: Path | None) -> list[ProjectFolder]:
    """Return the plugin folders beside the spec and in the current folder, each once."""
    found: dict[Path, ProjectFolder] = {}
    for project in (project_dir, Path.cwd()):
        if project is None:
            continue
        folder = read_project_folder(project)
        if folder is not None and folder.path not in found:
            number = len(found) + 1
            name = PROJECT_FOLDER if number == 1 else f"{PROJECT_FOLDER}_{number}"
            found[folder.path] = evolve(folder, module=name)
    return list(found.values())


def read_project_folder(project: Path) -> ProjectFolder | None:
    """Return the plugin files of a project, with the check of whether they may be imported; None without files."""
    try:
        project = project.resolve(strict=True)
        names = tuple(sorted(name for name in os.listdir(project / PROJECT_FOLDER) if name.endswith(".py")))  # noqa: PTH208 - Path.iterdir returns paths, not names
    except OSError:
        return None
    if not names:
        return None
    folder = ProjectFolder(project, names)
    try:
        refusal = next(filter(None, map(other_writer, (folder.path, *(folder.path / name for name in names)))), None)
        if refusal is not None:
            return evolve(folder, refusal=refusal)
        folder = evolve(folder, sources=_read(folder.path, names))
    except OSError as error:
        trouble = f"{error.filename or folder.path}: {error.strerror or error}"
        return evolve(folder, refusal=trouble, remedy="mend that")
    return _with_trust(folder)


def _read(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of files.

    Raises:
        OSError: one is not a regular file or cannot be read, or they are larger than `MAX_BYTES`.
    """
    sources: dict[str, bytes] = {}
    left = MAX_BYTES
    for name in names:
        with open(folder / name, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(0, "is no regular file", str(folder / name))
            sources[name] = file.read(left + 1)
        left -= len(sources[name])
        if left < 0:
            raise OSError(0, f"the files have more than {MAX_BYTES:,} bytes", str(folder))
    return sources


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # otherwise open() of a named pipe waits for a writer


def _with_trust(folder: ProjectFolder) -> ProjectFolder:
    """Return a folder with ``refusal`` and ``remedy`` set unless the user trusts it."""
    given = trusted_digests_of_environment()
    if given is not None:
        if folder.digest in given:
            return folder
        refusal = f"{TRUST_VARIABLE} does not name its digest {folder.digest}"
        return evolve(folder, refusal=refusal, remedy="add it there; a runner on a node trusts what its submitter did")
    trusted = trusted_digest(folder.project)
    if trusted == folder.digest:
        return folder
    refusal = "its files changed since you trusted it" if trusted else "you have not trusted it yet"
    remedy = f"look at the files, then type: torc plugins trust {shlex.quote(str(folder.project))}"
    return evolve(folder, refusal=refusal, remedy=remedy, can_be_trusted=True)


# --- importing ------------------------------------------------------------------------------------


_imported: Final[dict[str, ProjectFolder]] = {}
"""Folders from which this process has imported plugins, by the name of their package."""


def imported_digests() -> str:
    """Return the value of ``TORC_TRUST`` for a process that is to trust the folders imported by this one."""
    return ",".join(sorted(folder.digest for folder in _imported.values()))


def import_project_plugin(folder: ProjectFolder, plugin: str) -> ModuleType:
    """Import a plugin from the bytes that were read.

    Raises:
        PluginError: the folder may not be imported.
    """
    if folder.refusal is not None:
        raise PluginError(folder.explanation)
    if _imported.get(folder.module) is not folder:
        for name in _modules_of(folder.module):
            del sys.modules[name]
        _imported[folder.module] = folder
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    return importlib.import_module(f"{folder.module}.{plugin}")


def _modules_of(package: str) -> Iterator[str]:
    yield from [name for name in sys.modules if name == package or name.startswith(f"{package}.")]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finder and loader for the modules of trusted folders, which are kept in memory."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of a trusted folder; None for other modules."""
        package, _, stem = fullname.partition(".")
        folder = _imported.get(package)
        if folder is None or (stem and f"{stem}.py" not in folder.sources):
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=_origin(folder, stem), is_package=not stem)
        spec.has_location = bool(stem)
        return spec

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module."""
        package, _, stem = fullname.partition(".")
        folder = _imported[package]
        return compile(folder.sources[f"{stem}.py"] if stem else b"", _origin(folder, stem), "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """Return the source of a module, for tracebacks."""
        package, _, stem = fullname.partition(".")
        return importlib.util.decode_source(_imported[package].sources[f"{stem}.py"]) if stem else ""

    def is_package(self, fullname: str) -> bool:
        """Return whether a name is that of a folder's package."""
        return "." not in fullname


def _origin(folder: ProjectFolder, stem: str) -> str:
    return str(folder.path / f"{stem}.py") if stem else str(folder.path)
