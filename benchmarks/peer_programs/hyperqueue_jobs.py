"""Jobs by HyperQueue: one server and one worker on this machine. Prints the seconds of the jobs."""

import tempfile
import time

import graphs
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

work = graphs.work()
with tempfile.TemporaryDirectory() as folder, LocalCluster(server_dir=folder) as cluster:
    cluster.start_worker(WorkerConfig(cores=work.slots))
    client = cluster.client()
    job = Job(folder)
    tasks: list[object] = []
    for parents in work.parents:
        deps = [tasks[parent] for parent in parents]
        tasks.append(job.program(["/bin/sh", "-c", work.command], deps=deps, stdout=None, stderr=None))
    begin = time.perf_counter()
    client.wait_for_jobs([client.submit(job)])
    print(time.perf_counter() - begin)
