"""What a helper tells about its host, checked."""

from typing import Any, Self

from attrs import fields, frozen

from torc_ssh.session.helper_requests import HelperError, clean_text

RANGES = {
    "cpus": (1, 1 << 16),
    "memory_bytes": (1, 1 << 60),
    "time": (0, 1 << 36),
    "uid": (0, 1 << 32),
    "pid": (1, 1 << 32),
}
"""Least and largest value of numbers; times are in seconds since the epoch."""
MOST_GPUS = 1 << 10
MOST_TEXT = 4096


@frozen
class HostFacts:
    """What a helper tells about its host.

    Attributes:
        python: Path of the interpreter.
        version: Its version, such as ``3.11.2``.
        hostname: Name of the host.
        boot_id: Id of the present boot of the machine; "" if it is not known.
        user: Name of the user.
        uid: Number of the user.
        home: The user's home folder.
        pid: Process of the helper.
        cpus: CPUs that processes may use, by affinity and control groups.
        memory_bytes: Memory that processes may use.
        gpus: Names of the GPUs that processes may use, as in ``CUDA_VISIBLE_DEVICES``.
        time: Time of the host when it answered, in seconds since the epoch.
    """

    python: str
    version: str
    hostname: str
    boot_id: str
    user: str
    uid: int
    home: str
    pid: int
    cpus: int
    memory_bytes: int
    gpus: tuple[str, ...]
    time: float

    @classmethod
    def from_answer(cls, answer: Any) -> Self:
        """Return the facts that a helper sent.

        Raises:
            HelperError: a fact is missing or has a value that it cannot have.
        """
        try:
            values = {each.name: answer[each.name] for each in fields(cls)}
            values["gpus"] = tuple(values["gpus"][:MOST_GPUS]) if isinstance(values["gpus"], list) else None
            found = cls(**values)
        except (KeyError, TypeError) as error:
            raise HelperError("invalid", f"the host's facts are incomplete: {clean_text(error)}") from None
        for each in fields(cls):
            value = getattr(found, each.name)
            texts = value if isinstance(value, tuple) else () if each.type in (int, float) else (value,)
            if any(not isinstance(text, str) or len(text) > MOST_TEXT for text in texts) or (
                each.type in (int, float) and (isinstance(value, bool) or not isinstance(value, int | float))
            ):
                raise HelperError("invalid", f"the host's fact {each.name} is {clean_text(repr(value))}")
        for name, (least, most) in RANGES.items():
            if not least <= getattr(found, name) <= most:
                raise HelperError("invalid", f"the host's fact {name} is {getattr(found, name)}")
        return found
