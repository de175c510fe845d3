"""Models that are not on this machine: is it a name on the Hugging Face hub, and does the hub answer?"""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from launcher.files import beside
from launcher.format import gib
from launcher.preflight import models
from launcher.preflight.finding import Finding, Level, of_model
from launcher.text import clean, did_you_mean

TIMEOUT = 5.0  # seconds for the hub's answer
TRUE = ("1", "on", "yes", "true")
SITE = "https://huggingface.co/"

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def absent(name: str, key: str, env: Mapping[str, str]) -> Iterator[Finding]:
    """What becomes of a name that is no folder here."""

    def finding(rule: str, level: Level, message: str, fix: str) -> Finding:
        return Finding(rule, "model", level, (key,), message, fix)

    if models.is_toy(name):
        yield finding("MODEL-0", "info", "the toy model is made on the first start", "ppo-tui data toy makes it now")
        return
    if name.startswith(SITE):
        short = "/".join(name.removeprefix(SITE).split("/")[:2])
        yield finding("MODEL-4", "error", f"{name} is an address, and veRL wants a name", f"write {short}")
        return
    if name.startswith(("/", "~", ".")) or name.count("/") > 1 or not _NAME.fullmatch(name):
        yield _nowhere(name, key)
        return
    if offline(env):
        yield finding(
            "MODEL-4",
            "error",
            f"{name} is not in the cache {models.hub_cache(env)}{_near(name, env)}, and HF_HUB_OFFLINE "
            "forbids to fetch it",
            f"HF_HUB_OFFLINE=0 hf download {name}",
        )
        return
    status = ask(name, env)
    if status == 200:
        facts = models.facts(name, env)
        size = f", about {gib(2 * facts.parameters)} GiB" if facts else ""
        yield finding(
            "MODEL-5", "info", f"{name} will be downloaded on the first start{size}", f"hf download {name} does so now"
        )
    elif status in (401, 403):
        known = logged_in(env)
        yield finding(
            "MODEL-6",
            "warning" if known else "error",
            f"{name} is gated or does not exist: the hub answers {status} without a login{_near(name, env)}",
            "see that your token may read it"
            if known
            else f"accept its conditions on huggingface.co/{name}, then 'hf auth login' or export HF_TOKEN",
        )
    elif status == 404:
        yield finding("MODEL-4", "error", f"the hub has no model {name}{_near(name, env)}", "correct the name")
    else:
        yield finding(
            "MODEL-7",
            "error",
            f"{name} is not on this machine{_near(name, env)}, and the hub cannot be reached ({clean(str(status))})",
            f"copy the model here and give its folder, or set HF_ENDPOINT to a mirror; cache: {models.hub_cache(env)}",
        )


def _nowhere(name: str, key: str) -> Finding:
    """A path that leads nowhere, or no name at all."""
    path = Path(name)
    if path.is_file():
        message = f"{name} is a file, and a model is a folder"
    elif name.startswith(("/", "~", ".")) or name.count("/") > 1:
        near = did_you_mean(path.name, beside(path))
        message = f"there is no folder {name}{near}"
    else:
        message = f"'{name}' is no folder, and no name that a model can have"
    return of_model.error(
        "MODEL-4", (key,), message, "name the folder with config.json, or a model on the Hugging Face hub"
    )


def _near(name: str, env: Mapping[str, str]) -> str:
    """A model that is meant, perhaps: one in the cache, or one that is known here."""
    there = [each.name.removeprefix("models--").replace("--", "/") for each in models.hub_cache(env).glob("models--*")]
    tail = name.rpartition("/")[2]
    known = [*models.TABLE, *(f"{each}-Instruct" for each in models.TABLE)]
    if name in there or tail in known:
        return ""
    return did_you_mean(name, there) or did_you_mean(tail, known)


def ask(name: str, env: Mapping[str, str]) -> int | str:
    """The hub's answer to who asks, without a login, for the model's config.json: HTTP status or why none."""
    endpoint = env.get("HF_ENDPOINT") or SITE
    url = f"{endpoint.rstrip('/')}/{name}/resolve/main/config.json"
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "ppo-tui"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (ValueError, http.client.HTTPException):  # whose text quotes the address, with a password in it
        return "HF_ENDPOINT is no valid address"
    except OSError as error:
        return str(getattr(error, "reason", error)) or type(error).__name__


def logged_in(env: Mapping[str, str]) -> bool:
    """Whether huggingface_hub has a token: in the environment, or from `hf auth login`."""
    if env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN"):
        return True
    return Path(env.get("HF_TOKEN_PATH") or models.hub_home(env) / "token").expanduser().is_file()


def offline(env: Mapping[str, str]) -> bool:
    """Whether the hub must not be asked."""
    return env.get("HF_HUB_OFFLINE", "").lower() in TRUE
