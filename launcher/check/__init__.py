"""Preflight: checks of a run before it starts."""
