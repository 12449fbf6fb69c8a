"""The parser of the filter language: from a text to terms, all of which a job has to satisfy."""

import re
import time
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from torc_framework.errors import suggestion
from torc_framework.job_filters.fields import FILTER_FIELDS, FilterField, ValueKind
from torc_framework.job_filters.values import ANY_TEXT, LabelBegin, Presence, TextPattern, TimeSpan, parse_value

MAX_LENGTH: Final = 4000
"""Most characters of a filter."""
MAX_TERMS: Final = 50
"""Most terms of a filter."""
MAX_VALUES: Final = 200
"""Most values of all its terms."""
QUOTE: Final = '"'
LABEL_MARK: Final = "#"
"""What stands for each run of digits in the label of a group."""
ESCAPE: Final = "\\"

_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z_]*)(!=|>=|<=|>|<|=|:)")
_COMPARISON: Final = re.compile(r">=|<=|!=|>|<|=")
_NEGATION: Final = "-"
_TEXTS: Final = (ValueKind.TEXT, ValueKind.LABEL)
_PRESENCES: Final = {each.value: each for each in Presence}


class FilterError(ValueError):
    """A filter that cannot be read.

    Attributes:
        position: Number of the character where the error is, from 1.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"filter, position {position}: {message}")
        self.position = position


@frozen
class FilterTerm:
    """One condition on a job.

    Attributes:
        field: Name of the field, of `FILTER_FIELDS`.
        operator: ``=``, ``<``, ``<=``, ``>`` or ``>=``.
        values: The values, one of which has to be equal; a single one for the other operators. A text is a
            `TextPattern`, the begin of a label a `LabelBegin`, a time a `TimeSpan`; a size is in bytes, a duration in
            seconds; each may be a `Presence`.
        is_negated: The condition is that the field does not compare so with any of the values.
    """

    field: str
    operator: str
    values: tuple[Any, ...]
    is_negated: bool = False


def parse_filter(text: str, now_s: float | None = None) -> list[FilterTerm]:
    """Return the terms of a filter; none of an empty one.

    Args:
        text: The filter.
        now_s: The time from which times such as ``2h`` are counted back, seconds since the epoch; by default now.

    Raises:
        FilterError: the text is no filter.
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(f"the filter is longer than {MAX_LENGTH} characters", MAX_LENGTH + 1)
    return _FilterParser(text, time.time() if now_s is None else now_s).terms()


@frozen
class _Word:
    """A value as it was written.

    Attributes:
        parts: Its text, divided at each ``*`` that stands for any characters.
        position: Where it begins, from 0.
        is_quoted: It was in quotes.
    """

    parts: tuple[str, ...]
    position: int
    is_quoted: bool

    @property
    def text(self) -> str:
        """The text with its ``*``."""
        return ANY_TEXT.join(self.parts)


class _FilterParser:
    def __init__(self, text: str, now_s: float) -> None:
        self._text, self._now_s = text, now_s
        self._at = 0
        self._value_count = 0

    def terms(self) -> list[FilterTerm]:
        found: list[FilterTerm] = []
        while self._skip_blanks():
            if len(found) == MAX_TERMS:
                raise self._error(f"a filter has at most {MAX_TERMS} terms")
            found.append(self._term())
        return found

    def _error(self, message: str, position: int | None = None) -> FilterError:
        return FilterError(message, (self._at if position is None else position) + 1)

    def _skip_blanks(self) -> bool:
        """Move to the next character that is no blank; return whether there is one."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _term(self) -> FilterTerm:
        is_negated = self._text.startswith(_NEGATION, self._at)
        if is_negated:
            self._at += 1
            if self._at == len(self._text) or self._text[self._at].isspace():
                raise self._error('"-" needs a term right after it; put a text that begins with it in quotes')
        begin, match = self._at, _FIELD.match(self._text, self._at)
        if match is None:
            word = self._word(",")
            parts = word.parts if len(word.parts) > 1 else ("", *word.parts, "")
            return FilterTerm("name", "=", (TextPattern(parts),), is_negated)
        field = self._field(match[1], begin)
        self._at = match.end()
        operator = match[2]
        if operator == ":" and (comparison := _COMPARISON.match(self._text, self._at)):
            operator, self._at = comparison[0], comparison.end()
        if operator == "!=":
            operator, is_negated = "=", not is_negated
        if operator == ":":
            operator = "="
        if operator != "=" and not field.kind.is_ordered:
            raise self._error(f'{field.name} has no order; write {field.name}:VALUE instead of "{operator}"', begin)
        return FilterTerm(field.name, operator, tuple(self._values(field, operator)), is_negated)

    def _field(self, name: str, position: int) -> FilterField:
        field = FILTER_FIELDS.get(name.lower())
        if field is None:
            hint = suggestion(name.lower(), [*FILTER_FIELDS], limit=len(FILTER_FIELDS))
            raise self._error(f'no field is called "{name}"{hint} (put a text with ":" in quotes)', position)
        return field

    def _values(self, field: FilterField, operator: str) -> Iterator[Any]:
        while True:
            self._value_count += 1
            if self._value_count > MAX_VALUES:
                raise self._error(f"a filter has at most {MAX_VALUES} values")
            yield self._value(field, operator, self._word())
            if not self._text.startswith(",", self._at):
                return
            if operator != "=":
                raise self._error(f'"{operator}" takes a single value')
            self._at += 1

    def _value(self, field: FilterField, operator: str, word: _Word) -> Any:
        presence = None if word.is_quoted else _PRESENCES.get(word.text.lower())
        if presence is not None and operator == "=":
            return presence
        if (
            field.kind is ValueKind.LABEL
            and not word.is_quoted
            and len(word.parts) == 1
            and LABEL_MARK not in word.text
        ):
            return LabelBegin(word.text)
        if field.kind in _TEXTS:
            return TextPattern(word.parts)
        try:
            value = parse_value(field.kind, word.text, self._now_s)
        except ValueError as error:
            raise self._error(str(error), word.position) from None
        if operator == "=" and isinstance(value, TimeSpan) and value.start_s == value.end_s:
            raise self._error(
                f"write {field.name}>{word.text} for what is newer, or < for what is older", word.position
            )
        return value

    def _word(self, more: str = "") -> _Word:
        """Read a value, up to a blank or a comma.

        Args:
            more: Signs that do not end it.
        """
        begin = self._at
        if self._text.startswith(QUOTE, begin):
            return self._quoted(begin)
        while self._at < len(self._text) and not self._text[self._at].isspace():
            letter = self._text[self._at]
            if letter == "," and letter not in more:
                break
            if letter == QUOTE:
                raise self._error("a quote stands at the begin of a value, or within quotes after a backslash")
            self._at += 1
        if self._at == begin:
            raise self._error("a value is missing here")
        return _Word(tuple(self._text[begin : self._at].split(ANY_TEXT)), begin, is_quoted=False)

    def _quoted(self, begin: int) -> _Word:
        parts = [""]
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
            if letter == QUOTE:
                if self._at < len(self._text) and not (self._text[self._at].isspace() or self._text[self._at] == ","):
                    raise self._error("a blank has to follow the closing quote")
                return _Word(tuple(parts), begin, is_quoted=True)
            if letter == ANY_TEXT:
                parts.append("")
                continue
            if letter == ESCAPE and self._at < len(self._text):
                letter = self._text[self._at]
                self._at += 1
            parts[-1] += letter
        raise self._error("the quote is not closed", begin)
