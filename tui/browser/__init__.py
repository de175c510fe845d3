"""The screen in a browser: `ppo-tui serve`."""
