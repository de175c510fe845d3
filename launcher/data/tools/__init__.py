"""Tools that come with ppo-tui; presets name them as `$PPO_TUI_TOOLS/NAME.py`.

veRL loads such a file by its path, inside its agent workers (`verl/tools/function_tool.py`).
"""
