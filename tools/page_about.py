"""What launcher/about.toml has, in the README, the site and the wheel."""

import re

from launcher.core.about import ABOUT


def _sentence() -> str:
    tagline = ABOUT["tagline"]
    return f"A terminal dashboard that {tagline[0].lower()}{tagline[1:]}"


def tagline() -> str:
    """The first sentence of the README and of the first page."""
    return f"**{_sentence().replace('veRL', '[veRL](https://github.com/verl-project/verl)')}.**"


def checkout() -> str:
    """Where the commands of the README work."""
    address = ABOUT["repository"]
    return f"`git clone {address}`, then in its folder:" if address else "In a checkout of this repository:"


def settings(text: str) -> str:
    """pyproject.toml or zensical.toml with the sentence and the addresses. The site is that of GitHub's pages."""
    address = ABOUT["repository"]
    owner, name = address.split("/")[-2:] if address else ("", "")
    site = f"https://{owner}.github.io/{name}/" if address else ""
    urls = f'[project.urls]\nRepository = "{address}"\nDocumentation = "{site}"\n\n' if address else ""
    for pattern, new in (
        (r'(?m)^(description|site_description) = ".*"', rf'\1 = "{_sentence()}"'),
        (r'(?m)^site_url = ".*?"', f'site_url = "{site}"'),
        (r"(\[project\.urls\]\n(\w.*\n)*\n)?(?=\[project\.scripts\])", urls),
    ):
        text = re.sub(pattern, new, text)
    return text
