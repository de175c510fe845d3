"""The shipped presets, one commented YAML file each; read with importlib.resources."""
