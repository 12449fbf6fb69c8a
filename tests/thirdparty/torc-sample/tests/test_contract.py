"""The sample keeps the contracts of executors, classifiers and failure matchers."""

from typing import ClassVar

import torc_sample
from hypothesis import strategies as st
from torc_sample.executor import SampleLauncher

from torc_framework.testing import ClassifierContract, ExecutorContract, MatcherContract, observations


class TestExecutor(ExecutorContract):
    executor = SampleLauncher
    options: ClassVar[dict[str, str]] = {"greeting": "good day"}


class TestClassifier(ClassifierContract):
    plugin = torc_sample


class TestClassifierOfOwnEndings(ClassifierContract):
    plugin = torc_sample
    observations = observations(st.just(SampleLauncher.name))


class TestMatcher(MatcherContract):
    plugin = torc_sample
    rules = ({"answer": "42"},)
    wrong_rules = ({"answer": 42},)
