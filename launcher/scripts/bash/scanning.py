"""Where a word of a script ends: past quotes, `${...}`, `$(...)` and backslashes."""

import re

BLANK = " \t\u00a0"
"""Blanks between words; a page's unbreakable blank is one, however a shell sees it."""

TORN = re.compile(rf"\\[{BLANK}]+(?:#[^\n]*)?\n")
"""A backslash that would continue the line but for the blanks behind it: a shell ends the command there."""

_ENDS = f"{BLANK}\n;&|()<>"


def end_of_word(text: str, at: int, ends: str = _ENDS) -> int:
    """The place after the word that begins at `at`."""
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            if TORN.match(text, at):
                break
            at += 2
        elif letter in "'\"`$":
            at = end_of_part(text, at)
        elif text.startswith(("<(", ">("), at) and letter in ends:
            at = past(text, at + 2, "(")
        elif letter in ends:
            break
        else:
            at += 1
    return min(at, len(text))


def end_of_part(text: str, at: int) -> int:
    """The place after the quote or expansion that begins at `at`."""
    if text.startswith("$'", at):
        return _past_ansi(text, at + 2)
    if text.startswith("$(", at):
        return past(text, at + 2, "(")
    if text.startswith("${", at):
        return past(text, at + 2, "{")
    letter = text[at]
    if letter in "'`":
        end = text.find(letter, at + 1)
        while letter == "`" and end > 0 and text[end - 1] == "\\":
            end = text.find(letter, end + 1)
        return end + 1 or len(text)
    return past_double(text, at + 1) if letter == '"' else at + 1


def past_double(text: str, at: int) -> int:
    """The place after the closing double quote of the text that begins at `at`."""
    return _past(text, at, '"')


def past(text: str, at: int, opening: str) -> int:
    """The place after the bracket that closes the one before `at`."""
    return _past(text, at, opening)


def _past(text: str, at: int, first: str) -> int:
    """Iterative, so that nesting costs no stack: `open_` holds the brackets and quotes that are open."""
    open_ = [first]
    while at < len(text):
        letter, inner = text[at], open_[-1]
        if letter == "\\":
            at += 1
        elif letter == '"':
            if inner == '"':
                open_.pop()
            else:
                open_.append('"')
        elif letter == "'" and inner != '"' and not (inner == "{" and '"' in open_):
            at = text.find("'", at + 1)
            if at < 0:
                return len(text)
        elif text.startswith(("$(", "${"), at):
            open_.append(text[at + 1])
            at += 1
        elif inner == "(" and letter == "(":
            open_.append("(")
        elif (inner, letter) in (("(", ")"), ("{", "}")):
            open_.pop()
        elif inner == "(" and letter == "#" and text[at - 1] in f"{BLANK}\n":
            at = text.find("\n", at)
            if at < 0:
                return len(text)
        at += 1
        if not open_:
            return min(at, len(text))
    return len(text)


def _past_ansi(text: str, at: int) -> int:
    while at < len(text) and text[at] != "'":
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))
