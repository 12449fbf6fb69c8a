"""The parameters in the path and the query of a request, read as an endpoint declares them."""

from collections.abc import Mapping, Sequence
from typing import Any

from torc_framework.server.dispatch.endpoint import Endpoint
from torc_framework.server.http.endpoint_calls import is_integer_parameter, parse_integer
from torc_framework.server.http.endpoint_results import RequestError


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


def parse_query(endpoint: Endpoint, given: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of all parameters of the query, and the names of unknown ones.

    Args:
        endpoint: Declares the parameters.
        given: The texts of each parameter that the query has, in their order.

    Raises:
        RequestError: a parameter is missing, or its text is not a value of it.
    """
    query: dict[str, Any] = {}
    for name, parameter in endpoint.query.items():
        texts = given.get(name)
        if texts:
            values = [parameter.parse(name, text) for text in texts]
            query[name] = values if parameter.repeated else values[-1]
        elif parameter.required:
            raise RequestError(f"query {name!r} is missing")
        else:
            query[name] = parameter.default
    return query, [name for name in given if name not in endpoint.query]
