"""Presets: the settings of a run, from a commented YAML file to veRL's command line."""
