"""Files that presets name by path: reward functions as `$PPO_TUI_REWARDS/NAME.py`, tools as `$PPO_TUI_TOOLS/NAME.py`.

veRL loads each file separately, in its reward or agent workers, so a file imports nothing of this package.
"""
