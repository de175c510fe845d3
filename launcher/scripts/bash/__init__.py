"""Reads bash scripts without running them: the commands that one would start, with their environment."""
