"""The kinds of records of schedulers."""

from typing import Final

from torc_framework.models import records as r
from torc_framework.store.record_kinds.list_filters import equals
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.tables import core as t

SLURM_SCHEDULERS: Final = RecordKind(
    path="slurm_schedulers",
    title="Slurm scheduler",
    record=r.SlurmSchedulerRecord,
    table=t.SLURM_SCHEDULER,
    filters=equals(
        t.SLURM_SCHEDULER,
        name=str,
        account=str,
        gres=str,
        mem=str,
        nodes=int,
        partition=str,
        qos=str,
        tmp=str,
        walltime=str,
    ),
)
LOCAL_SCHEDULERS: Final = RecordKind(
    path="local_schedulers",
    title="Local scheduler",
    record=r.LocalSchedulerRecord,
    table=t.LOCAL_SCHEDULER,
    filters=equals(t.LOCAL_SCHEDULER, memory=str, num_cpus=int),
)
