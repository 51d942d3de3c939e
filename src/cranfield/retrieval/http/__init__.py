"""HTTP engines: a template says what to send and where the hits are in the answer."""
