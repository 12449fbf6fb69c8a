"""Kubeconfigs: which files there are, what they say together, and which entries a context selects.

The rules are those of kubectl ("Organizing Cluster Access Using kubeconfig Files"): the files of ``KUBECONFIG`` are one
document in which the first entry of a name counts, and relative paths begin at the folder of their file.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from attrs import field, frozen

from torc_framework.api import ConfigError
from torc_k8s.cluster.address import ClusterAddress

SIZE_LIMIT: Final = 8 * 1024 * 1024
"""Most bytes of a kubeconfig that is read."""
_LISTS: Final = ("clusters", "contexts", "users")
_PATH_KEYS: Final = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
_MAP_KEYS: Final = ("exec", "auth-provider")


@frozen
class SelectedContext:
    """The entries of a kubeconfig that a context selects.

    Args:
        name: The name of the context.
        files: The files that were read, as one text.
        cluster: The entry of the cluster.
        user: The entry of the user; empty without one.
        namespace: The namespace of the context; empty without one.
        folder: The folder in which a program of the user's entry begins a relative path.
    """

    name: str
    files: str
    cluster: dict[str, Any]
    user: dict[str, Any] = field(repr=False)
    namespace: str
    folder: Path


def kubeconfig_files(address: ClusterAddress, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the kubeconfigs that exist, in the order in which they count.

    Raises:
        ConfigError: the kubeconfig of the address does not exist.
    """
    if address.kubeconfig:
        path = Path(address.kubeconfig).expanduser()
        if not path.is_file():
            raise ConfigError(f"kubeconfig {path} does not exist or is not a file")
        return [path]
    names = environment.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(name).expanduser() for name in names if name] or [Path("~/.kube/config").expanduser()]
    return [path for path in paths if path.is_file()]


def select_context(files: list[Path], context: str = "") -> SelectedContext:
    """Return what a context selects.

    Raises:
        ConfigError: a file cannot be read, is not a kubeconfig, or lacks the context or what it names.
    """
    merged: dict[str, dict[str, tuple[dict[str, Any], Path]]] = {key: {} for key in _LISTS}
    current = ""
    for path in files:
        document = _document(path)
        current = current or str(document.get("current-context") or "")
        for key in _LISTS:
            for name, entry in _entries(document, key, path).items():
                merged[key].setdefault(name, (entry, path))
    shown = ", ".join(map(str, files))
    name = context or current
    if not name:
        known = merged["contexts"]
        choice = f"choose one with --context: {_names(known)}" if known else "it has no contexts"
        raise ConfigError(f"{shown}: no current context; {choice}")
    if name not in merged["contexts"]:
        raise ConfigError(f"{shown}: no context {name!r}{_nearest(name, merged['contexts'])}")
    entry, _path = merged["contexts"][name]
    cluster, cluster_path = _named(merged, "clusters", entry.get("cluster"), f"{shown}: context {name!r}")
    if not re.fullmatch(r"https?://[^\s/?#]+(/\S*)?", str(cluster.get("server"))):
        raise ConfigError(
            f"{cluster_path}: cluster {entry.get('cluster')!r} has no server, or one that is no URL with https://"
        )
    user, user_path = (
        _named(merged, "users", entry["user"], f"{shown}: context {name!r}")
        if entry.get("user")
        else ({}, cluster_path)
    )
    return SelectedContext(name, shown, cluster, user, str(entry.get("namespace") or ""), user_path.parent)


def _document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"kubeconfig {path} cannot be read: {error.strerror}") from None
    if len(text) > SIZE_LIMIT:
        raise ConfigError(f"kubeconfig {path} is larger than {SIZE_LIMIT} bytes")
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeError, RecursionError, ValueError) as error:
        line = f", line {mark.line + 1}" if (mark := getattr(error, "problem_mark", None)) else ""
        raise ConfigError(
            f"kubeconfig {path}{line} is not valid YAML: {getattr(error, 'problem', None) or error}"
        ) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig: a map is expected at its top")
    return document


def _entries(document: dict[str, Any], key: str, path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a list by name; their relative paths begin at the folder of the file."""
    values = document.get(key) or []
    found: dict[str, dict[str, Any]] = {}
    if not isinstance(values, list):
        raise ConfigError(f"kubeconfig {path}: {key} must be a list")
    for value in values:
        inner = value.get(key[:-1]) if isinstance(value, dict) else None
        if not isinstance(value, dict) or "name" not in value or not isinstance(inner, dict | None):
            raise ConfigError(f"kubeconfig {path}: each entry of {key} must have a name and a {key[:-1]}")
        entry = dict(inner or {})
        for part in _MAP_KEYS:
            if not isinstance(entry.get(part) or {}, dict):
                raise ConfigError(f"kubeconfig {path}: {part} of {value['name']!r} must be a map")
        for part in _PATH_KEYS[key]:
            if entry.get(part):
                entry[part] = str(path.parent.absolute() / Path(str(entry[part])).expanduser())
        found.setdefault(str(value["name"]), entry)
    return found


def _named(
    merged: dict[str, dict[str, tuple[dict[str, Any], Path]]], key: str, name: object, where: str
) -> tuple[dict[str, Any], Path]:
    found = merged[key].get(str(name))
    if found is None:
        raise ConfigError(
            f"{where} names the {key[:-1]} {name!r}, which does not exist{_nearest(str(name), merged[key])}"
        )
    return found


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {_names(known)}"


def _names(known: Mapping[str, object]) -> str:
    return ", ".join(sorted(known)[:20]) or "none"
