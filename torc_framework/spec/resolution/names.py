"""Look-up of names and patterns in the names of one kind, with findings that suggest similar names."""

import bisect
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from attrs import define, field

from torc_framework.errors import suggestion
from torc_framework.spec.language.findings import PLACEHOLDER, Problems, SpecFinding, SpecPath
from torc_framework.text.safe_regex import compiled_pattern, search_all

_LITERAL_START: Final = re.compile(r"\^([\w\-/]+)")
_MAX_COMPARED: Final = 1000
_REPEATS: Final = frozenset("*?{")


@define
class NameTable:
    """The names of one kind of entry.

    Attributes:
        kind: The kind, for messages: "job", "file".
        names: The names by position.
        doubtful: Names may be missing because of another error, so that an unknown name is no finding.
    """

    kind: str
    names: list[str]
    doubtful: bool
    problems: Problems
    positions: dict[str, int] = field(init=False)
    _matches: dict[str, tuple[int, ...] | str] = field(factory=dict, init=False)  # a text is an error message
    _ordered: list[tuple[str, int]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.positions = {name: position for position, name in enumerate(self.names)}

    def extend(self, names: Iterable[str]) -> None:
        """Add names; only before the first look-up of a pattern or of an unknown name."""
        start = len(self.names)
        self.names.extend(names)
        self.positions.update(zip(islice(self.names, start, None), range(start, len(self.names)), strict=True))

    def position(self, name: str, path: SpecPath, of: str | None = None, slot: int = 0) -> int | None:
        """Return the position of ``name``; if it is unknown, add a finding and return None.

        Args:
            name: The name.
            path: Path of the reference.
            of: Name of the job with the reference, for the message.
            slot: Distinguishes several references at one path.
        """
        found = self.positions.get(name)
        if found is None and not self.doubtful:
            hint = suggestion(name, self._candidates(name)).removeprefix("; ")
            whose = f" in job {of!r}" if of else ""
            self.problems.add(
                SpecFinding(f"unknown {self.kind} {name!r}{whose}", hint=hint, path=path), f"unknown {slot}"
            )
        return found

    def matching(self, pattern: str, path: SpecPath, of: str | None = None) -> tuple[int, ...]:
        """Return the positions of all names in which ``pattern`` is found, in order.

        An invalid pattern and a pattern without a match are findings. Equal patterns return the same object.
        """
        if pattern not in self._matches:
            self._matches[pattern] = self._search(pattern)
        found = self._matches[pattern]
        if isinstance(found, str):
            hint = "a backslash before a sign takes it literally"
            self.problems.add(SpecFinding(found, hint=hint, path=path), "bad pattern")
            return ()
        if not found and not self.doubtful:
            whose = f" (in job {of!r})" if of else ""
            known = f"among them: {', '.join(self.names[:5])}" if self.names else "none are defined"
            text = f"pattern {pattern!r} matches none of the {len(self.names)} {self.kind} names{whose}"
            self.problems.add(SpecFinding(text, hint=known, path=path), "no match")
        return found

    def _search(self, pattern: str) -> tuple[int, ...] | str:
        try:
            compiled_pattern(pattern)
            if not (prefix := _literal_prefix(pattern)):
                return tuple(search_all(pattern, self.names))
            near = self._starting_with(prefix)
            found = search_all(pattern, [name for name, _ in near])
        except ValueError as error:
            return str(error)
        return tuple(sorted(near[n][1] for n in found))

    def _candidates(self, name: str) -> Sequence[str]:
        """Return the names to compare with an unknown one; of many names only its neighbours in sorted order."""
        if len(self.names) <= _MAX_COMPARED:
            return [known for known in self.names if not known.startswith(PLACEHOLDER)]
        ordered = self._sorted()
        place = bisect.bisect_left(ordered, (name,))
        return [near for near, _ in ordered[max(0, place - _MAX_COMPARED // 20) : place + _MAX_COMPARED // 20]]

    def _sorted(self) -> list[tuple[str, int]]:
        if not self._ordered:
            self._ordered = sorted(zip(self.names, range(len(self.names)), strict=True))
        return self._ordered

    def _starting_with(self, prefix: str) -> list[tuple[str, int]]:
        """Return names and positions of all names with a prefix, by bisection."""
        ordered = self._sorted()
        first = bisect.bisect_left(ordered, (prefix,))
        return ordered[first : bisect.bisect_left(ordered, (prefix[:-1] + chr(ord(prefix[-1]) + 1),))]


def _literal_prefix(pattern: str) -> str:
    """Return the common prefix of all matches of an anchored pattern, or ""."""
    match = _LITERAL_START.match(pattern)
    if match is None or "|" in pattern:
        return ""
    following = pattern[match.end() : match.end() + 1]
    return match[1][:-1] if following in _REPEATS and following else match[1]


def report_duplicates(kind: str, key: str, names: Sequence[str], origins: Iterable[int], problems: Problems) -> None:
    """Add a finding for each duplicate name."""
    first: dict[str, int] = {}
    for name, origin in zip(names, origins, strict=True):
        if name not in first:
            first[name] = origin
            continue
        path = (key, origin, "name")
        if first[name] == origin:
            hint = "put every parameter into the name"
            problems.add(SpecFinding(f"the parameters make {kind} name {name!r} twice", hint=hint, path=path), "twice")
        else:
            text = f"{kind} name {name!r} is given twice"
            problems.add(SpecFinding(text, hint=f"{key}[{first[name]}] has it already", path=path), "twice")
