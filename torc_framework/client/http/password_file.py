"""Reading of the file with a user's password, which ``TORC_PASSWORD_FILE`` names."""

import os
import stat
from pathlib import Path
from typing import Final

from torc_framework.errors import ConfigError

MAX_BYTES: Final = 4096
"""Largest size of a password file; a larger file is refused as a mistake."""


def read_password(path: str | Path) -> str:
    """Return the password in a file: its only line, without the line break.

    As with private keys of ``ssh``, the file must belong to the user or to root, and no other user may have access.

    Raises:
        ConfigError: the file cannot be read, other users have access to it, or it does not hold exactly one line.
    """
    shown = f"password file {path} (TORC_PASSWORD_FILE)"
    try:
        # Without O_NONBLOCK, open() of a named pipe without a writer would wait.
        descriptor = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # noqa: PTH111 - Path.expanduser raises for an unknown user
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the {shown}: {getattr(error, 'strerror', None) or error}") from error
    try:
        trouble = _why_unsafe(os.fstat(descriptor))
        if trouble:
            raise ConfigError(f"the {shown} {trouble}")
        return _only_line(os.read(descriptor, MAX_BYTES + 1), shown)
    finally:
        os.close(descriptor)


def _why_unsafe(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {found.st_uid}); make a file of your own"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = stat.S_IMODE(found.st_mode)
        return (
            f"is open to other users (mode {mode:04o}); change the password if it was read, and run 'chmod 600' on it"
        )
    return None


def _only_line(content: bytes, shown: str) -> str:
    if len(content) > MAX_BYTES:
        raise ConfigError(f"the {shown} holds more than {MAX_BYTES} bytes; it must hold the password alone")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the {shown} does not hold UTF-8 text: {error.reason} at byte {error.start}") from error
    line = text.removesuffix("\n").removesuffix("\r")
    if not line:
        raise ConfigError(f"the {shown} is empty")
    if any(letter in line for letter in "\r\n\0"):
        raise ConfigError(f"the {shown} holds more than one line; it must hold the password alone")
    return line
