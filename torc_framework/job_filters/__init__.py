"""The filter language for jobs, such as ``status:failed group:train exit:137 peak_mem>48g -text``.

`parse_filter` makes terms of a text; the store makes conditions of the terms. The language is described in
docs/reference/workflow-views.md.
"""

from torc_framework.job_filters.fields import FILTER_FIELDS, FilterField, ValueKind
from torc_framework.job_filters.parser import FilterError, FilterTerm, parse_filter
from torc_framework.job_filters.values import LabelBegin, Presence, TextPattern, TimeSpan
from torc_framework.job_filters.write import filter_text, quoted_value

__all__ = [
    "FILTER_FIELDS",
    "FilterError",
    "FilterField",
    "FilterTerm",
    "LabelBegin",
    "Presence",
    "TextPattern",
    "TimeSpan",
    "ValueKind",
    "filter_text",
    "parse_filter",
    "quoted_value",
]
