"""Templates: texts with ``{name}`` and ``{name:specifier}``, which are replaced for one combination of values.

Only names of parameters are replaced. Other braces do not change: ``${HOME}``, ``{}``, ``awk '{print $1}'``. Neither
does ``${name}``, which belongs to the shell, even if a parameter has that name.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from torc_framework.spec.expansion.parameters import MadeValues, ParameterValue, WholeNumbers

PARAMETER_NAME: Final = re.compile(r"[A-Za-z_][\w-]*")
_PLACE: Final = re.compile(rf"(?<!\$)\{{({PARAMETER_NAME.pattern})(?::([^{{}}]*))?\}}")


def placeholders(*texts: str) -> list[str]:
    """Return the names in braces in texts, without duplicates, in order."""
    return list(dict.fromkeys(match[1] for text in texts if "{" in text for match in _PLACE.finditer(text)))


Row = Sequence[int]
"""One combination of values: for each parameter the position of its value."""
Fill = Callable[[Row], Any]


@define
class Template:
    """A text with placeholders.

    Attributes:
        uses: Positions of its parameters.
        fill: Returns the text for a combination.
    """

    uses: frozenset[int]
    fill: Fill


@define
class TemplateMaker:
    """Factory of templates for one set of parameters; it parses each text and specifier once.

    Attributes:
        values: The parameters' values, by name, in order.
    """

    values: Mapping[str, Sequence[ParameterValue]]
    _positions: dict[str, int] = field(init=False)
    _texts: dict[tuple[str, str | None], Sequence[str]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._positions = {name: position for position, name in enumerate(self.values)}

    def make(self, text: str) -> Template | None:
        """Return the template of ``text``; None if it has no placeholder.

        Raises:
            ValueError: a specifier cannot be applied to a parameter's values.
        """
        if "{" not in text:
            return None
        pattern: list[str] = []
        places: list[tuple[int, Sequence[str]]] = []
        end = 0
        for match in _PLACE.finditer(text):
            name, specifier = match.groups()
            if name not in self._positions:
                continue
            pattern += [text[end : match.start()].replace("%", "%%"), "%s"]
            places.append((self._positions[name], self._formatted(name, specifier)))
            end = match.end()
        if not places:
            return None
        pattern.append(text[end:].replace("%", "%%"))
        return Template(frozenset(position for position, _ in places), _filler("".join(pattern), places))

    def _formatted(self, name: str, specifier: str | None) -> Sequence[str]:
        """Return the texts of a parameter's values under a specifier."""
        key = (name, specifier)
        if key not in self._texts:
            values = self.values[name]
            try:
                self._texts[key] = _texts_of(values, specifier)
            except ValueError as error:
                raise ValueError(f"{{{name}:{specifier}}}: {error}") from error
        return self._texts[key]


def _texts_of(values: Sequence[ParameterValue], specifier: str | None) -> Sequence[str]:
    """Return the texts of values under a specifier.

    Raises:
        ValueError: it cannot be applied to one of them.
    """

    def text(value: ParameterValue) -> str:
        return value.format(specifier) if specifier else value.text

    if not isinstance(values, MadeValues):
        return list(map(text, values))
    text(values[0])  # all are of one type, so that a specifier is good for all of them or for none
    if isinstance(values, WholeNumbers):
        numbers, form = values.numbers, specifier or "d"
        return MadeValues(len(values), lambda position: format(numbers[position], form))
    make = values.make
    return MadeValues(len(values), lambda position: text(make(position)))


def _filler(pattern: str, places: list[tuple[int, Sequence[str]]]) -> Fill:
    if len(places) == 1:
        ((position, texts),) = places
        if isinstance(texts, MadeValues):
            make = texts.make
            return lambda row: pattern % make(row[position])
        return lambda row: pattern % texts[row[position]]
    if len({position for position, _ in places}) == 1 and isinstance(places[0][1], list):
        position = places[0][0]  # all placeholders have one parameter: there is one text per value
        count = len(places[0][1])
        filled = [pattern % tuple(texts[n] for _, texts in places) for n in range(count)]
        return lambda row: filled[row[position]]
    return lambda row: pattern % tuple([texts[row[position]] for position, texts in places])


def fill_json(value: Any, maker: TemplateMaker) -> tuple[frozenset[int], Callable[[Row], Any]]:
    """Return the parameters in the texts of a JSON value, and a function that replaces them."""
    if isinstance(value, str):
        template = maker.make(value)
        return (template.uses, template.fill) if template else (frozenset(), lambda row: value)
    if isinstance(value, list):
        uses, fills = _each(value, maker)
        return uses, lambda row: [fill(row) for fill in fills]
    if isinstance(value, dict):
        uses, fills = _each(value.values(), maker)
        return uses, lambda row: {key: fill(row) for key, fill in zip(value, fills, strict=True)}
    return frozenset(), lambda row: value


def _each(values: Iterable[Any], maker: TemplateMaker) -> tuple[frozenset[int], list[Callable[[Row], Any]]]:
    pairs = [fill_json(value, maker) for value in values]
    return frozenset().union(*(uses for uses, _ in pairs)), [fill for _, fill in pairs]
