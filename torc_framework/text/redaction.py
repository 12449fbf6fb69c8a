"""Redaction of secrets in texts that leave this machine, such as logs, command lines and error messages.

Secrets are found by a table of patterns and by the values of secret environment variables, and replaced by `MARK`. The
patterns match too much rather than too little; a secret that looks like an ordinary word and stands in no known context
is not found.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

MARK: Final = "<redacted>"
"""Text that replaces a secret."""
MIN_VALUE: Final = 6
"""Length of the shortest value of a secret variable that is searched in texts; shorter ones occur in any text."""

_WORDS: Final = (
    r"[a-z0-9]*passw(?:or)?d|[a-z0-9]*passwd|pwd|[a-z0-9]*passphrase|[a-z0-9]*secret|[a-z0-9]*token|pat"
    r"|[a-z0-9]*api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|ssh[_-]?key|license[_-]?key"
    r"|credentials?|connection[_-]?string|webhook[_-]?url|signature"
)
_NAME: Final = rf"(?<![a-z0-9])(?:[a-z0-9]{{1,40}}[_.-]){{0,8}}(?:{_WORDS})(?:[_.-][a-z0-9]{{1,40}}){{0,8}}(?![a-z0-9])"
"""A name whose value is a secret: one of its parts between "_", "." or "-" is one of these words."""
_VALUE: Final = r"""(?:\\?"(?:\\.|[^"\\\r\n])*"?|'(?:\\.|[^'\\\r\n])*'?|[^\s"']\S*)"""
"""A value: a quoted text, or everything up to the next blank."""


@frozen
class SecretPattern:
    """A form in which secrets are written.

    Attributes:
        name: Kind of the secret, for the reference pages.
        regex: Expression that finds it.
        replacement: Replacement of the found text.
    """

    name: str
    regex: re.Pattern[str]
    replacement: str = MARK


_I: Final = re.IGNORECASE
_KEY_BLOCK: Final = "[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


def _whole(name: str, regex: str, flags: int = 0) -> SecretPattern:
    """Return the pattern of a secret with a recognizable form."""
    return SecretPattern(name, re.compile(regex, flags))


def _after(name: str, before: str, secret: str, behind: str = "") -> SecretPattern:
    """Return the pattern of a secret that is recognized by the text before it and optionally behind it."""
    regex = re.compile(f"({before})(?!{MARK}){secret}{behind}", _I)
    return SecretPattern(name, regex, rf"\g<1>{MARK}{behind}")


SECRET_PATTERNS: Final = (
    _whole("private key block", rf"-----BEGIN {_KEY_BLOCK}.*?(?:-----END {_KEY_BLOCK}|\Z)", re.DOTALL),
    _after(
        "Authorization header", r"""(?:proxy-)?authorization["']?\s{0,8}[:=]\s{0,8}["']?""", r"""[^\s"'][^\r\n"']*"""
    ),
    _after("cookie", r"""\b(?:set-)?cookie2?["']?[ \t]{0,8}:[ \t]{0,8}""", r"[^\s<][^\r\n]*"),
    _after("password in a URL", r"""\b[a-z][a-z0-9+.-]{0,30}://[^\s/?#@:"']{0,256}:""", r"""[^\s/?#"']{1,512}""", "@"),
    _after("address of an embedded server", "/~", r"[\w-]{16,}"),
    _after(
        "secret in a query",
        rf"[?&](?:{_WORDS}|sig|key|code|auth|x-amz-[a-z-]{{1,40}}|x-goog-[a-z-]{{1,40}})=",
        r"""[^&\s"'#]+""",
    ),
    _after("assignment, field or option", rf"""{_NAME}\\?["']?[ \t]{{0,8}}[=:][ \t]{{0,8}}""", _VALUE),
    _after("option with its value apart", rf"(?<!\S)--?{_NAME}[ \t]{{1,8}}", _VALUE),
    _after("user and password of an option", r"(?<!\S)(?:-u|--user)[ =]?[^\s:]{1,256}:", r"\S+"),
    _after("bearer token", r"\b(?:bearer|basic)[ \t]{1,8}", r"[a-z0-9+/=._~-]{8,}"),
    _whole("AWS key", r"\b(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA)[0-9A-Z]{16}\b"),
    _whole("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})\b"),
    _whole("GitLab token", r"\bgl(?:pat|ptt|cbt|dt|rt|ft|soat)-[\w-]{16,}"),
    _whole("Slack token", r"\bxox[a-z]-[\w-]{10,}"),
    _whole("key of a model's service", r"\b(?:sk|rk|pk)-[\w-]{20,}|\b(?:sk|rk)_(?:live|test)_\w{16,}"),
    _whole("Google key", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"),
    _whole("Hugging Face, npm or PyPI token", r"\b(?:hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{16,})"),
    _whole("JSON web token", r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    _whole("bcrypt hash", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"),
)
"""All patterns, in the order in which they are applied."""
_SECRET_NAME: Final = re.compile(_NAME, _I)


def is_secret_name(name: str) -> bool:
    """Return whether a variable, option or field of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def secret_values(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the values of secret environment variables, longest first; by default of this process."""
    variables = os.environ if environment is None else environment
    values = {value for name, value in variables.items() if is_secret_name(name) and len(value) >= MIN_VALUE}
    return sorted(values, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text in which secrets are replaced by `MARK`.

    Args:
        text: Any text.
        secrets: Values to replace wherever they occur, such as those of `secret_values`.
    """
    for secret in secrets:
        text = text.replace(secret, MARK)
    for pattern in SECRET_PATTERNS:
        text = pattern.regex.sub(pattern.replacement, text)
    return text
