"""What a preset takes on a machine: memory by phase, and the facts of models that it follows from."""
