"""Text forms of amounts in reports."""


def memory(size_bytes: float) -> str:
    """Return a size such as ``10.50 GB``, in binary units."""
    value = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TB"


def duration(seconds: float) -> str:
    """Return a time such as ``2h 45m 0s``, without leading zeros; below ten seconds with a decimal."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, secs = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes}m {secs}s"
    return f"{minutes}m {secs}s" if minutes else f"{secs}s"


def cpu(percent: float) -> str:
    """Return a CPU use such as ``950.5%``; 100 is one core."""
    return f"{percent:.1f}%"


def cores(number: float) -> str:
    """Return CPU cores as a percentage of one core."""
    return f"{number * 100:.0f}%"


def over(percent: float) -> str:
    """Return by how much a use exceeds the requirement, such as ``+31.3%``."""
    return f"{percent:+.1f}%"
