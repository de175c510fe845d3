"""Where the time of a step goes: its stages on each lane, what the GPU allows, and the setting that would save most."""
