"""Which keys are told to people."""

from textual.binding import Binding


def is_ours(binding: Binding) -> bool:
    """Whether help and palette list a key: it is in the footer, or has a tooltip of its own."""
    return bool(binding.description and (binding.show or binding.tooltip)) and not binding.system
