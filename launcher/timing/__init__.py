"""Step time: its stages per lane, the GPU's limit, and the setting that would save most."""
