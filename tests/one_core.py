"""A worker keeps to one core, its processes too: linear algebra on all cores in every worker takes several times the CPU.

NumPy reads these settings when it is first imported, so conftest.py imports this module before anything that needs NumPy.
"""

from __future__ import annotations

import os

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if IS_WORKER:
    os.environ |= dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1")
