"""The parameters in the path and the query of a request, read as an operation declares them."""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from torc_framework.models.torc_contract import CONTRACT_PARAMETERS, NOT_CARRIED_OUT, refused_items
from torc_framework.server.http.endpoint_calls import Parameter, is_integer_parameter, parse_integer
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.request_bodies import joined_findings

_SHOWN: Final = 100
"""Characters of an unknown name that a message has."""


def parse_path(parameters: Mapping[str, str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the integer parameters and the text parameters of a path.

    Raises:
        RequestError: a text is not an integer where one is expected.
    """
    ids: dict[str, int] = {}
    words: dict[str, str] = {}
    for name, text in parameters.items():
        if is_integer_parameter(name):
            ids[name] = parse_integer(f"path: {name}", text)
        else:
            words[name] = text
    return ids, words


def sent_parameters(scope: MutableMapping[str, Any]) -> dict[str, list[str]]:
    """Return the texts of each parameter that the query of a request has."""
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def parse_query(
    operation: str, declared: Mapping[str, Parameter], given: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the values of all parameters of the query.

    Args:
        operation: Method and path, as declared.
        declared: The parameters that the operation has.
        given: The texts of each parameter that the query has, in their order.

    Raises:
        RequestError: a parameter is missing, its text is not a value of it, or the operation has no such parameter.
    """
    query: dict[str, Any] = {}
    for name, parameter in declared.items():
        texts = given.get(name)
        if texts:
            values = [parameter.parse(name, text) for text in texts]
            query[name] = values if parameter.repeated else values[-1]
        elif parameter.required:
            raise RequestError(f"query {name!r} is missing")
        else:
            query[name] = parameter.default
    if not given.keys() <= query.keys():
        _check_unknown(operation, query, {name: texts[-1] for name, texts in given.items() if name not in query})
    return query


def _check_unknown(operation: str, known: Iterable[str], unknown: Mapping[str, str]) -> None:
    """Refuse parameters that an operation does not have: without a filter, a list would have other records.

    Raises:
        RequestError: there is one, and it is not without effect in Torc's contract (422).
    """
    items = CONTRACT_PARAMETERS.get(operation, {})
    if refused := ", ".join(map(repr, refused_items(items, unknown))):
        raise RequestError(f"query {refused}: {NOT_CARRIED_OUT}", 422)
    names = [repr(name[:_SHOWN]) for name in unknown if name not in items]
    if names:
        raise RequestError(f"query {joined_findings(names)}: unknown here; known: {', '.join(known) or 'none'}", 422)
