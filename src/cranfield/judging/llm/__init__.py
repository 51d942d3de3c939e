"""LLM judges: every question is stored before it is sent, every reply afterwards; their labels are never people's."""
