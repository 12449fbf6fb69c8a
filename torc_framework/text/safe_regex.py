"""Searches with users' regular expressions, whose time is limited.

Python's engine backtracks through all ways in which an expression may match: ``^(a+)+$`` takes years for a text of
sixty letters. If the form of the expression and the lengths of the texts bound the work, the search runs in this
process; otherwise it runs in a child process with a limit on its CPU time.
"""

import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

LIMIT_S: Final = 5
"""Most CPU time of a search in a child process, seconds."""
WALL_LIMIT_S: Final = 120.0
"""Most elapsed time of such a search, seconds, for a machine under load."""
SMALL: Final = 10**8
"""Most steps of a search in this process, which take less than about a second."""
_TOO_LONG: Final = "takes too long: write it without repeats within repeats, such as (a+)+, and with fewer of * and +"
_refused: Final[set[tuple[str, int]]] = set()
"""Expressions and flags that took too long, which are refused without another search."""
_PROGRAM: Final = """
import json, re, resource, sys
order = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (order["limit_s"], order["limit_s"]))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
search = re.compile(order["pattern"], order["flags"]).search
json.dump([position for position, text in enumerate(order["texts"]) if search(text)], sys.stdout)
"""


def search_all(pattern: str, texts: Sequence[str], flags: int = 0) -> list[int]:
    """Return the positions of the texts in which an expression is found.

    Args:
        pattern: Regular expression of Python's `re`.
        texts: Texts to search.
        flags: Flags of `re.compile`.

    Raises:
        ValueError: the expression is malformed, or its search takes too long; the message explains how to write it.
    """
    compiled = compiled_pattern(pattern, flags)
    if _most_steps(compiled, texts) <= SMALL:
        return [position for position, text in enumerate(texts) if compiled.search(text)]
    return _search_apart(compiled, texts)


def compiled_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a compiled expression, for other uses than a search.

    Raises:
        ValueError: the expression is malformed.
    """
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _search_apart(compiled: re.Pattern[str], texts: Sequence[str]) -> list[int]:
    import json
    import subprocess

    if (compiled.pattern, compiled.flags) in _refused:
        raise ValueError(f"{compiled.pattern!r} {_TOO_LONG}")
    order = {"pattern": compiled.pattern, "flags": compiled.flags, "texts": [*texts], "limit_s": LIMIT_S}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            timeout=WALL_LIMIT_S,
            check=False,
        )
        is_over = done.returncode < 0  # ended by a signal: the kernel enforces RLIMIT_CPU so
    except subprocess.TimeoutExpired:
        is_over = True
    if is_over:
        _refused.add((compiled.pattern, compiled.flags))
        raise ValueError(f"{compiled.pattern!r} {_TOO_LONG}")
    if done.returncode:
        raise ValueError(f"{compiled.pattern!r} cannot be searched: {(done.stderr.splitlines() or ['?'])[-1]}")
    found: list[int] = json.loads(done.stdout)
    return found


def _most_steps(compiled: re.Pattern[str], texts: Sequence[str]) -> float:
    """Return an upper bound of the steps of a search in all texts; infinity if there is none."""
    parser = importlib.import_module("re._parser")  # private module of CPython, without types; no public parser exists
    try:
        tokens = parser.parse(compiled.pattern, compiled.flags & ~re.DEBUG)
        factor, exponent = _work(tokens)
    except (_UnknownWorkError, re.error, RecursionError):
        return float("inf")
    first = str(tokens[0][1]) if len(tokens) and str(tokens[0][0]) == "AT" else ""
    is_anchored = first == "AT_BEGINNING_STRING" or (first == "AT_BEGINNING" and not compiled.flags & re.MULTILINE)
    power = max(1, exponent if is_anchored else exponent + 1)  # one more: a match may begin anywhere
    return len(texts) * factor * float(max(map(len, texts), default=0) + 1) ** power


class _UnknownWorkError(Exception):
    """The form of an expression gives no bound of the work."""


_ONE_LETTER: Final = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"})
_FEW: Final = 8
"""Repeats with at most this count multiply the factor; other ones raise the exponent by one."""


def _work(tokens: Iterable[Any]) -> tuple[float, int]:
    """Return factor and exponent of the steps that parsed tokens take on a text of n letters: factor * n ** exponent.

    Raises:
        _UnknownWorkError: a repeat contains more than one letter, or the tokens contain another backtracking construct.
    """
    factor, exponent = 1.0, 0
    for code, value in tokens:
        name = str(code)
        if name in _ONE_LETTER or name == "AT":
            factor += 1
        elif name == "SUBPATTERN":
            inner = _work(value[-1])
            factor, exponent = factor * inner[0], exponent + inner[1]
        elif name == "BRANCH":
            inners = [_work(each) for each in value[1]]
            factor *= sum(inner[0] for inner in inners)
            exponent += max(inner[1] for inner in inners)
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            _, high, body = value
            if int(high) <= _FEW and (inner := _work(body))[1] == 0:
                factor *= (1 + inner[0]) ** int(high)
            elif len(body) == 1 and str(body[0][0]) in _ONE_LETTER:
                exponent += 1
            else:
                raise _UnknownWorkError
        else:
            raise _UnknownWorkError
    return factor, exponent
