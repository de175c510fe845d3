"""Models that are not on this machine: whether the Hugging Face hub has the name, and whether it answers."""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from launcher.check.finding import Finding, of_model
from launcher.core.files import beside
from launcher.core.format import gib
from launcher.core.text import clean, did_you_mean
from launcher.estimate import models

TIMEOUT = 5.0  # seconds for the hub's answer
TRUE = ("1", "on", "yes", "true")
SITE = "https://huggingface.co/"

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def absent(name: str, key: str, env: Mapping[str, str], *, asks: bool = True) -> Iterator[Finding]:
    """The finding for a name that is not a folder here. `asks`: the hub may be asked for it."""
    keys = (key,)
    if models.is_toy(name):
        message = "the toy model is built on the first start"
        yield of_model.info("MODEL-0", message, "run `ppo-tui data toy` to build it now", keys)
        return
    if name.startswith(SITE):
        short = "/".join(name.removeprefix(SITE).split("/")[:2])
        yield of_model.error("MODEL-4", f"{name} is a URL; veRL expects a name", f"use {short}", keys)
        return
    if name.startswith(("/", "~", ".")) or name.count("/") > 1 or not _NAME.fullmatch(name):
        yield _nowhere(name, key)
        return
    cache, near = models.hub_cache(env), _near(name, env)
    if offline(env):
        message = f"{name} is not in the cache {cache}{near}, and HF_HUB_OFFLINE disables downloads"
        yield of_model.error("MODEL-4", message, f"run `HF_HUB_OFFLINE=0 hf download {name}`", keys)
        return
    if not asks:
        message = f"{name} is not on this machine{near}, and --static does not ask the hub for it"
        yield of_model.info("MODEL-5", message, f"run `hf download {name}`, or check it without --static", keys)
        return
    status = ask(name, env)
    if status == 200:
        facts = models.facts(name, env)
        size = f", about {gib(2 * facts.parameters)} GiB" if facts else ""
        message = f"{name} will be downloaded on the first start{size}"
        yield of_model.info("MODEL-5", message, f"run `hf download {name}` to download it now", keys)
    elif status in (401, 403):
        message = f"{name} is gated or does not exist: the hub returns {status} without a login{near}"
        fix = f"accept its terms on huggingface.co/{name}, then run `hf auth login` or set HF_TOKEN"
        if logged_in(env):
            yield of_model.warning("MODEL-6", message, "make sure that your token has access to it", keys)
        else:
            yield of_model.error("MODEL-6", message, fix, keys)
    elif status == 404:
        yield of_model.error("MODEL-4", f"no model {name} on the Hugging Face hub{near}", "correct the name", keys)
    else:
        message = f"{name} is not on this machine{near}, and the hub cannot be reached ({clean(str(status))})"
        fix = f"copy the model here and use its folder, or set HF_ENDPOINT to a mirror; cache: {cache}"
        yield of_model.error("MODEL-7", message, fix, keys)


def _nowhere(name: str, key: str) -> Finding:
    """The finding for a path that does not exist, or an invalid name."""
    path = Path(name)
    if path.is_file():
        message = f"{name} is a file; a model is a folder"
    elif name.startswith(("/", "~", ".")) or name.count("/") > 1:
        near = did_you_mean(path.name, beside(path))
        message = f"folder not found: {name}{near}"
    else:
        message = f"'{name}' is neither a folder nor a valid model name"
    fix = "use the folder with config.json, or the name of a model on the Hugging Face hub"
    return of_model.error("MODEL-4", message, fix, (key,))


def _near(name: str, env: Mapping[str, str]) -> str:
    """A model with a similar name: in the cache, or in the table."""
    there = [each.name.removeprefix("models--").replace("--", "/") for each in models.hub_cache(env).glob("models--*")]
    tail = name.rpartition("/")[2]
    known = [*models.table(), *(f"{each}-Instruct" for each in models.table())]
    if name in there or tail in known:
        return ""
    return did_you_mean(name, there) or did_you_mean(tail, known)


def ask(name: str, env: Mapping[str, str]) -> int | str:
    """The hub's answer to a request without a login for the model's config.json: the HTTP status, or why there is
    none.
    """
    endpoint = env.get("HF_ENDPOINT") or SITE
    url = f"{endpoint.rstrip('/')}/{name}/resolve/main/config.json"
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "ppo-tui"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (ValueError, http.client.HTTPException):  # whose text quotes the address, with a password in it
        return "HF_ENDPOINT is not a valid URL"
    except OSError as error:
        return str(getattr(error, "reason", error)) or type(error).__name__


def logged_in(env: Mapping[str, str]) -> bool:
    """Whether huggingface_hub has a token: in the environment, or from `hf auth login`."""
    if env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN"):
        return True
    return Path(env.get("HF_TOKEN_PATH") or models.hub_home(env) / "token").expanduser().is_file()


def offline(env: Mapping[str, str]) -> bool:
    """Whether the environment forbids requests to the hub."""
    return env.get("HF_HUB_OFFLINE", "").lower() in TRUE
