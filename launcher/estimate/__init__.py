"""The resources of a preset on a machine: memory by phase, and the underlying facts of models."""
