"""Presets: what a run is asked to do, from a commented YAML file to veRL's command line."""
