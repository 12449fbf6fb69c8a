"""Parameters of jobs, read from their names: each parameter that multiplies jobs is part of the name.

A name is divided into numbers, words and signs. The names of a family agree in the signs, in the kinds of the parts
between them and in the first word; a part in which they differ is a parameter. Its name is the last word before it that
is the same in all names and names no parameter yet, unless that is the first word: ``train_lr0.1_bs32`` has ``lr`` and
``bs``. A value that is several words, or a number with a minus sign, cannot be told from two parts.
"""

import re
from collections.abc import Sequence
from typing import Final

from attrs import Factory, define

_PART: Final = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|(?P<word>[A-Za-z]+)|(?P<sign>[^0-9A-Za-z]+)"
)
_NUMBER, _WORD, _SIGN = "number", "word", "sign"


@define
class NamedParameter:
    """One parameter of a family.

    Attributes:
        part: Position of its part in a name.
        values: Position of each of its values, in the order in which names have them.
    """

    name: str
    part: int
    values: dict[str, int]


@define
class NameFamily:
    """Names of one form.

    Attributes:
        label: The form, with ``{name}`` for each parameter.
        members: Positions of the names.
        parts: For each of them its parts.
    """

    label: str
    members: list[int]
    parts: list[tuple[str, ...]]
    parameters: list[NamedParameter] = Factory(list)


def name_families(names: Sequence[str]) -> list[NameFamily]:
    """Return the families of names that have parameters, those with most names first."""
    found: dict[tuple[str, ...], NameFamily] = {}
    kept: dict[str, str] = {}  # equal parts of many names are one text in memory
    for position, name in enumerate(names):
        parts: list[str] = []
        form: list[str] = []
        for match in _PART.finditer(name):
            text, kind = match[0], match.lastgroup or _SIGN
            parts.append(kept.setdefault(text, text))
            form.append(text if kind == _SIGN or (kind == _WORD and not parts[1:]) else kind)
        family = found.setdefault(tuple(form), NameFamily("", [], []))
        family.members.append(position)
        family.parts.append(tuple(parts))
    for shape, family in found.items():
        _read_parameters(family, shape)
    families = [family for family in found.values() if family.parameters]
    return sorted(families, key=lambda family: (-len(family.members), family.members[0]))


def _read_parameters(family: NameFamily, form: Sequence[str]) -> None:
    label: list[str] = []
    free_word: str | None = None
    for part, values in enumerate(zip(*family.parts, strict=True)):
        distinct = dict.fromkeys(values)
        if len(distinct) == 1:
            label.append(values[0])
            if form[part] == _WORD:
                free_word = values[0]
            continue
        name = free_word or f"parameter_{len(family.parameters) + 1}"
        if any(name == other.name for other in family.parameters):
            name = f"{name}_{len(family.parameters) + 1}"
        free_word = None
        label.append(f"{{{name}}}")
        family.parameters.append(NamedParameter(name, part, {value: number for number, value in enumerate(distinct)}))
    family.label = "".join(label)


def value_order(value: str) -> tuple[bool, float, str]:
    """Return the key that sorts values: numbers in their order, then words."""
    try:
        return False, float(value), value
    except ValueError:
        return True, 0.0, value
