"""Logs of what users were shown and did: one self-describing file per format.

A reader gives rows under the names of one schema and knows nothing of what makes an event sound: that is said in
`online.event`, once, for files and for what comes over HTTP. `cranfield.formats.events.format` says what a format is.
"""
