"""The values in a sentence for tests, without its prose."""


def quoted(text: str) -> list[str]:
    """The words with a digit, in order."""
    words = (word.strip(",.;:()'") for word in text.split())
    return [word for word in words if any(map(str.isdigit, word))]
