"""Bash scripts: read without running them (`reader`), or run with recording stubs (`recording`).

Either gives the commands that a script would start, with their environment.
"""
