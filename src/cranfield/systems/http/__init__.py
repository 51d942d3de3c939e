"""Engines behind HTTP: a template says what to send and where the hits are in what comes back; nothing else differs."""
