"""The constants that a plugin compares with: numbers and words of its code and of the tables that its code names.

A classifier that speaks for exit code 4711 alone is asked about 4711 only by values that are made from its constants.
"""

import dis
import functools
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from attrs import field, frozen
from hypothesis import strategies as st

MOST_OBJECTS: Final = 4000
"""How many objects are looked at; the plugin's own come first."""
MOST_ITEMS: Final = 500
"""How many items of one table are looked at."""
_LONGEST_TEXT: Final = 200
_WORD: Final = re.compile(r"[A-Za-z][\w.-]*")
_FOREIGN: Final = sys.stdlib_module_names | {"attr", "attrs", "hypothesis", "pluggy", "pytest", "_pytest", "msgspec"}


@frozen
class Constants:
    """Constants in the order in which they were found.

    Attributes:
        numbers: Whole and broken numbers.
        texts: Texts, and for regular expressions texts that match.
    """

    numbers: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] = field(init=False)

    @words.default
    def _words(self) -> tuple[str, ...]:
        return tuple(text for text in self.texts if _WORD.fullmatch(text))

    @property
    def integers(self) -> tuple[int, ...]:
        """The whole numbers with their neighbours, and the numbers in the middle between two: for ranges."""
        whole = list(dict.fromkeys(number for number in self.numbers if isinstance(number, int)))
        near = [number + step for number in whole for step in (0, 1, -1)]
        ordered = sorted(whole[:MOST_ITEMS])
        between = [(low + high) // 2 for low, high in itertools.pairwise(ordered)]
        return tuple(dict.fromkeys([*near, *between]))


def constants_of(*roots: Any) -> Constants:
    """Return the constants of functions, and of everything that they name."""
    numbers: dict[float, None] = {}
    texts: dict[str, None] = {}
    queue: list[Any] = [*roots]
    seen: set[int] = set()
    kept: list[Any] = []  # so that no id is used twice
    while queue and len(kept) < MOST_OBJECTS:
        found = queue.pop(0)
        if isinstance(found, Enum):
            found = found.value
        if isinstance(found, bool) or found is None:
            continue
        if isinstance(found, (int, float)):
            numbers.setdefault(found)
        elif isinstance(found, str):
            texts.update(dict.fromkeys(_examples(found)))
        elif id(found) not in seen:
            seen.add(id(found))
            kept.append(found)
            queue += _parts(found)
    return Constants(tuple(numbers), tuple(text for text in texts if 0 < len(text) <= _LONGEST_TEXT))


def _examples(text: str) -> Iterator[str]:
    """Yield a text, and texts that match it if it looks like a regular expression."""
    yield text
    if len(text) <= _LONGEST_TEXT and re.search(r"[\\\[\](){}|*+?^$]", text):
        try:
            expression = re.compile(text)
        except re.error:
            return
        yield from _matching(expression)


@functools.cache
def _matching(expression: "re.Pattern[str]") -> tuple[str, ...]:
    from torc_framework.testing.support.generated_values import drawn

    try:
        return tuple(dict.fromkeys(drawn(st.from_regex(expression), 6)))
    except Exception:  # an expression that hypothesis cannot read gives no examples
        return ()


def _parts(found: Any) -> list[Any]:
    """Return what an object consists of and names."""
    if isinstance(found, re.Pattern):
        return [*(_matching(found) if isinstance(found.pattern, str) else ()), found.pattern]
    if isinstance(found, range):
        return [found.start, found.stop, *found[:MOST_ITEMS]]
    if isinstance(found, Mapping):
        return [part for pair in list(found.items())[:MOST_ITEMS] for part in pair]
    if isinstance(found, (list, tuple, Set)):
        return list(found)[:MOST_ITEMS]
    return _parts_of_code(found)


def _parts_of_code(found: Any) -> list[Any]:
    """Return the parts of code, a function, a method, a class or an object."""
    if isinstance(found, CodeType):
        return [each.argval for each in dis.get_instructions(found) if each.opname.startswith(("LOAD_C", "LOAD_SMALL"))]
    if isinstance(found, (staticmethod, classmethod)):
        return [found.__func__]
    if isinstance(found, MethodType):
        return [found.__func__, found.__self__]
    if isinstance(found, functools.partial):
        return [found.func, *found.args, *found.keywords.values()]
    return [] if isinstance(found, ModuleType) or _is_foreign(found) else _parts_of_object(found)


def _parts_of_object(found: Any) -> list[Any]:
    """Return the parts of a function, a class or an object of the plugin."""
    if isinstance(found, FunctionType):
        cells = [cell.cell_contents for cell in found.__closure__ or () if _is_filled(cell)]
        defaults = [*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()]
        return [found.__code__, *cells, *defaults, *_globals_of(found)]
    inner = getattr(found, "__wrapped__", None)
    named = vars(found) if hasattr(found, "__dict__") else {}
    own = [part for name, part in named.items() if not name.startswith("__")]
    slots = [getattr(found, name, None) for name in _slots(type(found))]
    return [*([inner] if inner is not None else []), *own, *slots, *([] if isinstance(found, type) else [type(found)])]


def _slots(kind: type) -> list[str]:
    names = [getattr(each, "__slots__", ()) for each in kind.__mro__]
    return [name for each in names for name in ([each] if isinstance(each, str) else each) if name != "__weakref__"]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _globals_of(function: FunctionType) -> list[Any]:
    """Return the values of the global names of a function, and the attributes that it takes from modules."""
    codes, names = [function.__code__], set[str]()
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        names.update(code.co_names)
    values = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    modules = [value for value in values if isinstance(value, ModuleType) and not _is_foreign(value)]
    taken = [vars(module)[name] for module in modules for name in sorted(names) if name in vars(module)]
    return [value for value in [*values, *taken] if not isinstance(value, ModuleType)]


def _is_foreign(found: Any) -> bool:
    """Return whether an object belongs to a library, whose constants are not those of the plugin."""
    if isinstance(found, FunctionType):
        module = found.__globals__.get("__name__", "")
    else:
        module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None)
    if not isinstance(module, str):
        module = type(found).__module__
    is_value = module.startswith("torc_framework.models")  # the classes of arguments and answers
    return is_value or module.partition(".")[0] in _FOREIGN


def constants_of_plugin(plugin: Any, *hooks: str) -> Constants:
    """Return the constants of the named hooks of a plugin."""
    return constants_of(*(getattr(plugin, hook) for hook in hooks if hasattr(plugin, hook)))
