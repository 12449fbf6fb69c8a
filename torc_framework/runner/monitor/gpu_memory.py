"""GPU memory of processes, from NVIDIA's management library (extra ``gpu``) if it and the driver are installed."""

from typing import Any


class GpuMeter:
    """Reads the GPU memory of processes from the driver."""

    def __init__(self) -> None:
        self._nvml, self._devices = _devices()

    def bytes_by_pid(self) -> dict[int, int] | None:
        """Return the GPU memory of each process that uses any; None if there is no GPU that can be queried."""
        if not self._devices:
            return None
        used: dict[int, int] = {}
        for device in self._devices:
            try:
                found = self._nvml.nvmlDeviceGetComputeRunningProcesses(device)
            except self._nvml.NVMLError:
                continue  # this card does not support the query
            for process in found:
                used[process.pid] = used.get(process.pid, 0) + (process.usedGpuMemory or 0)
        return used


def _devices() -> tuple[Any, list[Any]]:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # not installed, no driver, no card, or a driver of another version
        return None, []
    return pynvml, [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
