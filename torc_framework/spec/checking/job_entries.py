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
from torc_framework.spec.language.plain_job import BareJob, JobWithoutOptions, PlainJob
from torc_framework.spec.language.schema import Schema
from torc_framework.spec.reading.json_slices import NOT_DECODED, JsonSlices, TextSlice
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.read_json import parse_json

_PLAIN_JOBS: Final = msgspec.json.Decoder(list[PlainJob])
_JOBS_WITHOUT_OPTIONS: Final = msgspec.json.Decoder(list[JobWithoutOptions])
_BARE_JOBS: Final = msgspec.json.Decoder(list[BareJob])
_encode: Final = msgspec.json.Encoder().encode


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
    _have_options: dict[int, bool | None] = field(factory=dict, init=False)
    """By the position of a slice's first entry: whether its jobs may have options; None if they are not plain."""

    def slices(self, *, with_dependencies: bool = True) -> Iterator[JobSlice]:
        """Yield all entries.

        Args:
            with_dependencies: False if the caller does not use ``depends_on``, which entries then may lack.

        Raises:
            NotInSlicesError: a slice has to be read with the whole document.
            SpecError: the file was changed after it was divided.
        """
        for part, text in self.file.texts():
            yield self._slice_of(part, text, with_dependencies=with_dependencies)

    def _slice_of(self, part: TextSlice, text: bytes, *, with_dependencies: bool) -> JobSlice:
        origins, known = range(part.first, part.first + part.count), part.first in self._have_options
        if known and (have_options := self._have_options[part.first]) is not None:
            return JobSlice(  # they were checked before
                _decoder(have_options=have_options, with_dependencies=with_dependencies).decode(text),
                origins,
                have_options=have_options,
            )
        plain = None if known else _plain_jobs(text)
        self._have_options[part.first] = None if plain is None else plain[1]
        if plain is None:
            return JobSlice(_checked_jobs(text, self.schema), origins)
        return JobSlice(plain[0], origins, have_options=plain[1])


def _decoder(*, have_options: bool, with_dependencies: bool) -> "msgspec.json.Decoder[Any]":
    """Return the decoder of plain jobs that were decoded before."""
    if have_options:
        return _PLAIN_JOBS
    return _JOBS_WITHOUT_OPTIONS if with_dependencies else _BARE_JOBS


def _plain_jobs(text: bytes) -> tuple[list[PlainJob] | list[JobWithoutOptions], bool] | None:
    """Return the jobs of a slice, and whether they may have options, if all are plain ones and have no references.

    No job of the slice has a key twice, of which the decoder would take the last one.
    """
    if (b"$" in text and b"${" in text) or may_have_odd_texts(text):
        return None
    for decoder, have_options in ((_JOBS_WITHOUT_OPTIONS, False), (_PLAIN_JOBS, True)):
        try:
            jobs = decoder.decode(text)
        except NOT_DECODED:
            continue
        encoded = _encode(jobs)  # it lacks the keys that were there twice, and those with a default
        return (jobs, have_options) if text.count(b":") == encoded.count(b":") else None
    return None


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
