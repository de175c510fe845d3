"""Reward functions that come with ppo-tui; presets name them as `$PPO_TUI_REWARDS/NAME.py`.

veRL loads each file by its path in processes of its own: a file imports nothing but the standard library.
"""
