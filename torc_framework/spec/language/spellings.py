"""Keys of workflow files that are written for other versions of Torc: other spellings, and keys without effect here.

Published workflow files have several names for one key, because Torc renamed its keys. All of them are read. A key that
changes nothing of what runs is ignored with a warning. Every other unknown key is an error.
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, evolve, field

from torc_framework.spec.language.findings import SpecFinding, SpecPath

SPELLINGS_KEYWORD: Final = "x-spellings"
"""Additional keyword of an object's schema: the key of the schema, by each other spelling."""
FOREIGN_KEYWORD: Final = "x-foreign"
"""Additional keyword of an object's schema: why each foreign key has no effect."""
ANY_KEY: Final = "*"
"""In place of a foreign key: all keys that resemble no key of the schema."""

SPELLINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"job_sort_method": "jobs_sort_method", "resource_monitor_config": "resource_monitor"},
    "jobs": {
        "depends_on_jobs": "depends_on",
        "depends_on_job_names": "depends_on",
        "depends_on_job_regexes": "depends_on_regexes",
        "depends_on_job_name_regexes": "depends_on_regexes",
        "blocked_by": "depends_on",
        "blocked_by_jobs": "depends_on",
        "blocked_by_job_names": "depends_on",
        "blocked_by_regexes": "depends_on_regexes",
        "blocked_by_job_regexes": "depends_on_regexes",
        "blocked_by_job_name_regexes": "depends_on_regexes",
        "resource_requirements_name": "resource_requirements",
        "failure_handler_name": "failure_handler",
        "scheduler_name": "scheduler",
        "input_file_names": "input_files",
        "input_file_name_regexes": "input_file_regexes",
        "output_file_names": "output_files",
        "output_file_name_regexes": "output_file_regexes",
        "input_user_data_names": "input_user_data",
        "input_user_data_name_regexes": "input_user_data_regexes",
        "output_user_data_names": "output_user_data",
        "output_user_data_name_regexes": "output_user_data_regexes",
    },
}
"""Other spellings of keys, by the list of entries that have them; "" is the workflow itself."""

FOREIGN: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"enable_ro_crate": "no record of provenance is written"},
    "files": {
        "st_mtime": "the time of the file on disk counts",
        "identifier": "it belongs to a record of provenance, which is not written",
    },
    "resource_monitor": {ANY_KEY: "it is no setting of the resource monitor"},
}
"""Keys without which the jobs run in the same way, with the reason, by the entry that has them."""


def add_spellings(schema: dict[str, Any]) -> None:
    """Add both tables to the schema of a whole file."""
    for keyword, tables in ((SPELLINGS_KEYWORD, SPELLINGS), (FOREIGN_KEYWORD, FOREIGN)):
        for place, table in tables.items():
            part = schema["properties"][place] if place else schema
            part.get("items", part)[keyword] = dict(table)


@define
class WrittenKeys:
    """The spellings that a document has in place of the schema's keys.

    Attributes:
        keys: The last key as written, by the path with keys of the schema.
    """

    keys: dict[SpecPath, str] = field(factory=dict)

    def as_written(self, finding: SpecFinding) -> SpecFinding:
        """Return a finding with the document's own path."""
        if not self.keys:
            return finding
        path = finding.path
        written = tuple(self.keys.get(path[: n + 1], step) for n, step in enumerate(path))
        return finding if written == path else evolve(finding, path=written)
