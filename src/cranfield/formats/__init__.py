"""Files and frames → Run and Qrels, and back. One class per format, in `files/`; the content decides."""

from __future__ import annotations

from cranfield.formats.format import FORMATS as FORMATS
from cranfield.formats.runs_and_qrels import as_qrels as as_qrels
from cranfield.formats.runs_and_qrels import as_runs as as_runs
from cranfield.formats.runs_and_qrels import detect as detect
from cranfield.formats.runs_and_qrels import expand as expand
from cranfield.formats.runs_and_qrels import qrels_in as qrels_in
from cranfield.formats.runs_and_qrels import read_qrels as read_qrels
from cranfield.formats.runs_and_qrels import read_run as read_run
from cranfield.formats.runs_and_qrels import write_qrels as write_qrels
from cranfield.formats.runs_and_qrels import write_run as write_run
from cranfield.formats.streams import open_buffer as open_buffer
from cranfield.formats.streams import run_name as run_name
