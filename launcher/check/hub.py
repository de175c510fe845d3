"""Models missing on this machine: whether the Hugging Face hub has the name and answers."""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from launcher.check.finding import Finding, found
from launcher.core.files import near_file
from launcher.core.format import gib
from launcher.core.text import clean, did_you_mean, perhaps
from launcher.estimate import models

TIMEOUT = 5.0  # seconds for the hub's answer
TRUE = ("1", "on", "yes", "true")
SITE = "https://huggingface.co/"

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def absent(name: str, key: str, env: Mapping[str, str], *, asks: bool = True) -> Iterator[Finding]:
    """The finding for a name without a local folder. `asks`: the hub may be queried."""
    if models.is_toy(name):
        yield found("MODEL-0", key=key)
        return
    if name.startswith(SITE):
        short = "/".join(name.removeprefix(SITE).split("/")[:2])
        yield found("MODEL-4.url", name=name, short=short, key=key)
        return
    if name.startswith(("/", "~", ".")) or name.count("/") > 1 or not _NAME.fullmatch(name):
        yield _nowhere(name, key)
        return
    cache, near = models.hub_cache(env), _near(name, env)
    if offline(env):
        yield found("MODEL-4.offline", name=name, cache=cache, near=near, key=key)
        return
    if not asks:
        yield found("MODEL-5.static", name=name, near=near, key=key)
        return
    status = ask(name, env)
    if status == 200:
        facts = models.facts(name, env)
        size = f", about {gib(2 * facts.parameters)} GiB" if facts else ""
        yield found("MODEL-5.download", name=name, size=size, key=key)
    elif status in (401, 403):
        variant = "access" if logged_in(env) else "login"
        yield found(f"MODEL-6.{variant}", name=name, status=status, near=near, key=key)
    elif status == 404:
        yield found("MODEL-4.unknown", name=name, near=near, key=key)
    else:
        yield found("MODEL-7", name=name, near=near, status=clean(str(status)), cache=cache, key=key)


def fetched(name: str, env: Mapping[str, str]) -> bool:
    """Whether a model comes from the hub at the start of a run: it is missing here and has the form of a hub name."""
    here = models.is_toy(name) or models.folder_of(name, env) is not None
    return not (here or offline(env)) and _NAME.fullmatch(name) is not None


def _nowhere(name: str, key: str) -> Finding:
    """The finding for a missing path or an invalid name."""
    path = Path(name)
    if path.is_file():
        return found("MODEL-4.file", name=name, key=key)
    if name.startswith(("/", "~", ".")) or name.count("/") > 1:
        return found("MODEL-4.missing", name=name, near=perhaps(near_file(path)), key=key)
    return found("MODEL-4.name", name=name, key=key)


def _near(name: str, env: Mapping[str, str]) -> str:
    """A model with a similar name, in the cache or the table."""
    there = [each.name.removeprefix("models--").replace("--", "/") for each in models.hub_cache(env).glob("models--*")]
    tail = name.rpartition("/")[2]
    known = [*models.table(), *(f"{each}-Instruct" for each in models.table())]
    if name in there or tail in known:
        return ""
    return did_you_mean(name, there) or did_you_mean(tail, known)


def ask(name: str, env: Mapping[str, str]) -> int | str:
    """The hub's answer to a request without login for the model's config.json: HTTP status, or the failure."""
    endpoint = env.get("HF_ENDPOINT") or SITE
    url = f"{endpoint.rstrip('/')}/{name}/resolve/main/config.json"
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "ppo-tui"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (ValueError, http.client.HTTPException):  # its text quotes the address, which may have a password
        return "HF_ENDPOINT is not a valid URL"
    except OSError as error:
        return str(getattr(error, "reason", error)) or type(error).__name__


def logged_in(env: Mapping[str, str]) -> bool:
    """Whether huggingface_hub has a token, in the environment or from `hf auth login`."""
    if env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN"):
        return True
    return Path(env.get("HF_TOKEN_PATH") or models.hub_home(env) / "token").expanduser().is_file()


def offline(env: Mapping[str, str]) -> bool:
    """Whether the environment forbids requests to the hub."""
    return env.get("HF_HUB_OFFLINE", "").lower() in TRUE
