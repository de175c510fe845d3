"""What a test quotes of a sentence: its values, not its prose."""


def quoted(text: str) -> list[str]:
    """The words with a digit, in their order."""
    words = (word.strip(",.;:()'") for word in text.split())
    return [word for word in words if any(map(str.isdigit, word))]
