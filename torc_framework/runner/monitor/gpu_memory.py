"""GPU memory of processes, where NVIDIA's management library (extra ``gpu``) and its driver are installed."""

from typing import Any


class GpuMeter:
    """Asks the driver; says nothing where there is none."""

    def __init__(self) -> None:
        self._nvml, self._devices = _devices()

    def bytes_by_pid(self) -> dict[int, int] | None:
        """Return the GPU memory of each process that uses any; None where there is no GPU to ask."""
        if not self._devices:
            return None
        used: dict[int, int] = {}
        for device in self._devices:
            try:
                found = self._nvml.nvmlDeviceGetComputeRunningProcesses(device)
            except self._nvml.NVMLError:
                continue  # this card does not tell
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
