"""Jobs by Parsl: bash apps on its threads. Prints the seconds of the jobs."""

import os
import tempfile
import time

import graphs
import parsl
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor


@parsl.bash_app
def run_job(command: str, inputs: tuple[object, ...] = ()) -> str:
    """Return the command of one job, which Parsl runs in a shell."""
    return command


work = graphs.work()
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    executor = ThreadPoolExecutor(max_threads=work.slots)
    with parsl.load(Config(executors=[executor], run_dir=folder, usage_tracking=0)):
        begin = time.perf_counter()
        futures: list[object] = []
        for parents in work.parents:
            futures.append(run_job(work.command, inputs=[futures[parent] for parent in parents]))
        assert all(future.result() == 0 for future in futures)
        print(time.perf_counter() - begin)
