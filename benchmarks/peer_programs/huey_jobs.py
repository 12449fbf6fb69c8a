"""Independent jobs by huey: tasks in a SQLite file, worker threads in this process. Prints the seconds of the jobs."""

import subprocess
import tempfile
import time
from pathlib import Path

import graphs
from huey import SqliteHuey

work = graphs.work()
folder = tempfile.TemporaryDirectory()
queue = SqliteHuey(filename=str(Path(folder.name, "huey.db")), fsync=True)


@queue.task()
def run_job(command: str) -> int:
    """Run one job; the queue keeps its exit code."""
    return subprocess.run(["/bin/sh", "-c", command], check=False).returncode


results = [run_job(work.command) for _ in work.parents]
consumer = queue.create_consumer(
    workers=work.slots, worker_type="thread", initial_delay=0.01, backoff=1.0, periodic=False
)
begin = time.perf_counter()
consumer.start()
assert all(result.get(blocking=True) == 0 for result in results)
print(time.perf_counter() - begin)
consumer.stop(graceful=True)
folder.cleanup()
