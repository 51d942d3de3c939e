"""What speeds depend on: the machine, the versions, the memory held; nothing that names a computer or a person."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def machine() -> dict[str, Any]:
    """Cores, processor, memory and system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {
        "cores": cores,
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return found


def versions(system: dict[str, str]) -> dict[str, str]:
    """Python's, ours and the system's."""
    from cranfield import __version__

    return {"cranfield": __version__, "python": platform.python_version(), **system}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"


def forget_peak() -> None:
    """Let the count of the most memory held begin anew, where the system (Linux) allows that."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory() -> int | None:
    """The most memory this process held, in bytes: since `forget_peak` on Linux, since its start elsewhere."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE


def size_on_disk(folder: str) -> int:
    """The bytes of all files in a folder."""
    return sum(os.path.getsize(os.path.join(here, name)) for here, _, names in os.walk(folder) for name in names)
