"""Formats of event logs: what users saw and did. One class per format.

A reader yields rows with the field names of one schema. It does not validate events: `experiments.event` does that
for files and for HTTP. The base class is in `cranfield.formats.event_files.format`.
"""
