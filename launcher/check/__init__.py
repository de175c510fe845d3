"""Preflight: what can be known about a run before it starts."""
