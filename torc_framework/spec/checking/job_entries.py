"""Entries of jobs from the slices of a JSON file: read, checked and structured slice by slice."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from attrs import define, field

from torc_framework.spec.checking.schema_check import check, check_text, may_have_odd_texts
from torc_framework.spec.checking.spellings import replace_spellings
from torc_framework.spec.checking.structure import structure
from torc_framework.spec.expansion.job_slices import JobSlice
from torc_framework.spec.language.findings import Problems
from torc_framework.spec.language.plain_job import PlainJob
from torc_framework.spec.language.schema import Schema
from torc_framework.spec.reading.json_slices import NOT_DECODED, JsonSlices, TextSlice
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.read_json import parse_json

_PLAIN_JOBS: Final = msgspec.json.Decoder(list[PlainJob])
_encode: Final = msgspec.json.Encoder().encode
_SPACES_BEFORE_COLONS: Final = (b" :", b"\n:", b"\t:", b"\r:")


class NotInSlicesError(Exception):
    """A slice has something that needs the whole document: an error, or a warning with a position."""


@define
class JobEntries:
    """The entries of jobs of a JSON file.

    Attributes:
        file: The file.
        schema: The schema of a whole file.
    """

    file: JsonSlices
    schema: Schema
    _are_plain: dict[int, bool] = field(factory=dict, init=False)  # by the position of a slice's first entry

    def slices(self) -> Iterator[JobSlice]:
        """Yield all entries.

        Raises:
            NotInSlicesError: a slice has to be read with the whole document.
            SpecError: the file was changed after it was divided.
        """
        for part, text in self.file.texts():
            yield JobSlice(self._jobs_of(part, text), range(part.first, part.first + part.count))

    def _jobs_of(self, part: TextSlice, text: bytes) -> list[Any]:
        are_plain = self._are_plain.get(part.first)
        if are_plain:
            return _PLAIN_JOBS.decode(text)  # they were checked before
        jobs = _plain_jobs(text) if are_plain is None else None
        self._are_plain[part.first] = jobs is not None
        return _checked_jobs(text, self.schema) if jobs is None else jobs


def _plain_jobs(text: bytes) -> list[PlainJob] | None:
    """Return the jobs of a slice if all are plain ones and have no references."""
    if b"${" in text or may_have_odd_texts(text):
        return None
    try:
        jobs = _PLAIN_JOBS.decode(text)
    except NOT_DECODED:
        return None
    return jobs if _has_each_key_once(text, jobs) else None


def _has_each_key_once(text: bytes, jobs: list[PlainJob]) -> bool:
    """Return whether no job of a slice certainly has a key twice, of which the decoder takes the last.

    A quote before a colon ends a key, or is an escaped one in a text, which is the same in the written and in the
    encoded jobs. The encoded jobs lack the keys that were there twice, and those with a default.
    """
    if any(spaces in text for spaces in _SPACES_BEFORE_COLONS):
        return False
    return text.count(b'":') == _encode(jobs).count(b'":')


def _checked_jobs(text: bytes, schema: Schema) -> list[Any]:
    """Return the jobs of a slice of any kind.

    Raises:
        NotInSlicesError: they have errors.
    """
    problems = Problems()
    try:
        written = text.decode()
        document = {"name": "slice", "jobs": parse_json(written)}
    except (ParseProblem, UnicodeDecodeError) as error:
        raise NotInSlicesError from error
    check_text(written, document, problems)
    replace_spellings(document, schema, problems)
    check(document, schema, problems)
    if problems or problems.placed_warnings or problems.warnings:
        raise NotInSlicesError
    return structure(document).jobs
