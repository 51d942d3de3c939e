"""TREC runs and qrels: white-space separated columns, one line a document."""

from __future__ import annotations

from cranfield.kernels import Layout

RUN = Layout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5, most=6)
QRELS = Layout("topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True)
