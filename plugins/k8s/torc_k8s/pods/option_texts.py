"""The texts of the executor's options, such as ``disk=ssd,zone=a``, as the values of `PodOptions`."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from torc_framework.api import ConfigError, suggestion
from torc_k8s.pods.pod_options import Toleration, Volume


def items(text: str, separator: str = ",") -> list[str]:
    """Return the items of a list without blanks around them; empty ones are left out."""
    return [item for part in text.split(separator) if (item := part.strip())]


def pairs(text: str) -> dict[str, str]:
    """Return the entries of a text such as ``disk=ssd,zone=a``.

    Raises:
        ConfigError: an item has no ``=``, or a key comes twice.
    """
    found: dict[str, str] = {}
    for item in items(text):
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"{item!r} has no '='; expected KEY=VALUE, separated by commas")
        if key.strip() in found:
            raise ConfigError(f"{key.strip()!r} is given twice")
        found[key.strip()] = value.strip()
    return found


def tolerations(text: str) -> list[Toleration]:
    """Return the tolerations of a text such as ``gpu=true:NoSchedule,spot:NoExecute:300``; ``*`` is all taints.

    Raises:
        ConfigError: an item is malformed.
    """
    return [_toleration(item) for item in items(text)]


def _toleration(item: str) -> Toleration:
    taint, _, rest = item.partition(":")
    effect, _, seconds = rest.partition(":")
    key, equals, value = taint.partition("=")
    if seconds and not (seconds.isascii() and seconds.isdigit()):
        raise ConfigError(f"{item!r} is no toleration: expected KEY[=VALUE][:EFFECT[:SECONDS]], or *")
    given: dict[str, Any] = {"key": "" if key == "*" else key, "effect": effect}
    given |= {"value": value} if equals else {}
    return Toleration(**given, seconds=int(seconds[:9]) if seconds else None)


_FORM: Final = "expected KIND:SOURCE:FOLDER[:ro], such as claim:scratch:/data"
_KINDS: Final = ("claim", "nfs", "host", "empty", "secret", "config_map")


def volumes(text: str) -> list[Volume]:
    """Return the volumes of a text such as ``claim:scratch:/data,host:/opt/models:/models:ro,empty:5g:/tmp``.

    Raises:
        ConfigError: an item is malformed.
    """
    return [_volume(item) for item in items(text)]


def _volume(item: str) -> Volume:
    kind, _, rest = item.partition(":")
    if kind not in _KINDS:
        raise ConfigError(f"{item!r} is no volume: unknown kind {kind!r}{suggestion(kind, _KINDS)}; {_FORM}")
    is_read_only = rest.endswith((":ro", ":rw"))
    place = rest[:-3] if is_read_only else rest
    source, _, mount = place.rpartition(":")
    if not source or not mount:
        raise ConfigError(f"{item!r} is no volume: {_FORM}")
    return Volume(mount=mount, read_only=rest.endswith(":ro"), **{kind: source})


def affinity(text: str) -> dict[str, Any]:
    """Return the affinity that a text has as JSON.

    Raises:
        ConfigError: it is no JSON object.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{text[:60]!r} is no JSON object, such as '{{\"nodeAffinity\": {{...}}}}'")
    return found


def named(option: str, parse: Callable[[str], Any], text: str) -> Any:
    """Return what ``parse`` makes of the text of an option; None for an empty text.

    Raises:
        ConfigError: the text is malformed; the message names the option.
    """
    if not text.strip():
        return None
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{option} of executor k8s: {error}") from None


def require_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise `ConfigError` if an option's value is none of the choices."""
    if value not in choices:
        raise ConfigError(f"{option} of executor k8s is {value!r}; it must be one of {', '.join(choices)}")
