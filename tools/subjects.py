"""`make lint`: checks the subjects of commits since the branch point.

A subject is the effect in the field's words, imperative and at most 72 characters (CONTRIBUTING.md has examples).
"""

import re
import sys
from pathlib import Path

from budget import base_of, git

LENGTH = 72  # characters
VERBS = re.compile(r"(?:say|name|call|expect|let|keep|put|write down)\b", re.IGNORECASE)
"""Verbs about the words or code of a change instead of its effect."""
TODAY = re.compile(r"\btoday\b", re.IGNORECASE)


def faults(subject: str) -> list[str]:
    """What is wrong with the subject of a commit."""
    found = [f"{len(subject)} characters of at most {LENGTH}"] if len(subject) > LENGTH else []
    if verb := VERBS.match(subject):
        found.append(f"the verb '{verb[0]}'")
    if TODAY.search(subject):
        found.append("the word 'today'")
    return found


def main(root: Path) -> int:
    lines = git(root, "log", "--no-merges", "--format=%h %s", f"{base_of(root)}..HEAD").splitlines()
    wrong = [(line, ", ".join(found)) for line in lines if (found := faults(line.partition(" ")[2]))]
    for line, found in wrong:
        print(f"error: commit {line}: {found}")
    if wrong:
        print("hint: reword it as the effect, such as 'Cache slow tests by their inputs' (git rebase -i, reword)")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
