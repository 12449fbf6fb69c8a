"""Answers to cases: questions in JSON on endings, as ``torc classify`` and `answer_case` take them.

A case describes an ending in the words of one system: Torc itself, Slurm, OSMO, Kubernetes, or another batch system.
Each module answers for one system, or reads its words. The rules that the framework itself applies during a run are in
`torc_framework.exits`.
"""
