"""Passwords, keys and tokens: recognized by name and by form, refused in settings, hidden in output.

More names of variables (capitals only) than of veRL keys count as secret: `prompt_key` and `pad_token` are settings.
"""

import re
from typing import Any

HIDDEN = "***"
_NUMBERS = frozenset((float, int))

# parts of a variable's name: anywhere, as the end of a part, as the last one; those of names that hold none
_PARTS = frozenset(
    ("KEY", "PWD", "CREDENTIAL", "CREDENTIALS", "CREDS", "COOKIE", "COOKIES", "JWT", "SECRETS", "PASSWORDS")
)
_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "ACCESSKEY", "SECRETKEY", "AUTHKEY")
_LAST = frozenset(("PAT", "PASS", "AUTH", "AUTHORIZATION", "BEARER", "DSN", "SAS"))
_SIZES = "MAX MIN NUM LEN LENGTH COUNT LIMIT SIZE BUDGET PER LEVEL TTL TIMEOUT"
_PLACES = "PATH FILE DIR NAME PATTERN MODE TYPE"
_SYMBOLS = "PAD EOS BOS UNK SEP MASK STOP"
_HARMLESS = frozenset(f"{_SIZES} {_PLACES} {_SYMBOLS}".split())
_ORDERS = ("backward", "forward", "first", "second", "third", "next", "last", "each")
_COMPUTED = "".join(rf"(?<!\b{word} )" for word in _ORDERS)  # a backward pass is no password
_SPECIAL = "".join(rf"(?<!\b{word} )" for word in _SYMBOLS.split())  # the stop token is a symbol
_WORD = (
    r"(?:(?:api|access|secret|private|auth|account|license|encryption|signing|ssh|wandb|openai|hf)_?key"
    r"|(?:(?:hf|hub|huggingface|auth|access|api|bearer|wandb|github|gitlab|refresh|session|secret|bot|user)_?)token"
    rf"|passw(?:or)?d|passphrase|{_COMPUTED}pass|pwd|secret|credentials?|bearer|authorization)"
)
_KEY = re.compile(rf"(?:^|[_.\-+@/]){_WORD}$|(?:^|\.)token$", re.IGNORECASE)
_LOOKS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|AKIA[0-9A-Z]{12,}|xox[abposr]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|(?<=[Bb]earer )[\w.~+/=-]{8,}"
)
_LOGIN = re.compile(r"(?<=://)([^/@\s:'\"]*):([^/@\s'\"]+)(?=@)")
# W&B's keys have no form of their own: 40 hexadecimal digits, in `wandb login KEY` or its messages
_WANDB = re.compile(
    r"(\bwandb\b[^\n]{0,100}?)(?<![0-9a-f])(?:[0-9a-f]{40}(?![0-9a-f])|wandb_v1_\w{16,})", re.IGNORECASE
)
_ELSEWHERE = re.compile(r"\$\{oc\.(?:env|decode):")  # read from the environment when the run starts
_NOTHING = r"(?!['\"]?(?:None|null|True|False|nan|\$\{|\*\*\*|-?[\d.]+(?=[\s,'\"})\]]|$)))"
# `'api_key': 'x'`, `api_key=x`, `--password x`; a value in quotes may hold blanks
_VALUE = r"('[^'\n]+'|\"[^\"\n\\]+\"|[^\s,'\"\\\[\](){}]+)"
_NAMED = re.compile(
    rf"((?:(?:\b|_|--){_WORD}|{_SPECIAL}\btoken)(?:['\"]?\s?[:=]\s?|(?<=\w)\s)){_NOTHING}{_VALUE}", re.IGNORECASE
)
# `GITHUB_PAT=x`, `'GITHUB_PAT': 'x'`
_ASSIGNED = re.compile(rf"((?<![A-Za-z0-9_])([A-Z][A-Z0-9_]+)['\"]?\s?[:=]\s?){_NOTHING}{_VALUE}")
# a text without any of these has no known secret: most lines of a log, whose patterns take a millisecond per 5 kB
_NAMES = ("_key", "-key", "apikey", "accesskey", "secret", "passw", "passphrase", "_pass", "pass:", "pass=", "pwd")
_MORE_NAMES = ("token'", 'token"', "token=", "token:", "-token", "credential", "bearer", "authorization", "private key")
_PREFIXES = ("://", "hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat", "akia", "xox", "aiza")
_LOOK_HINTS = (*_PREFIXES, "eyj", "bearer", "private key")
_HINTS = (*_NAMES, *_MORE_NAMES, *_LOOK_HINTS)
_KINDS = ("key", "token", "pass", "secret", "pwd", "credential", "bearer", "authorization")  # one is in each name
# `"perf/x_token": 0.5`: a number is no secret, whatever its name; its name cannot be longer
_FIGURES = re.compile(r"(?<![\w./@+-])['\"]?[\w./@+-]{1,80}['\"]?: ?-?\d[\d.]{0,30}(?:e[-+]\d{1,3})?(?=[\s,}\]]|$)")
_CREDENTIAL_HINTS = ("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "COOKIE", "JWT")
_VARIABLE_HINTS = (*_CREDENTIAL_HINTS, "PAT", "AUTH", "BEARER", "DSN", "SAS")


def is_secret(name: str) -> bool:
    """Whether a variable of that name probably holds a secret: HF_TOKEN, GITHUB_PAT, MY_PASS; not MAX_TOKENS, PWD."""
    parts = re.findall("[A-Z]+", name.upper())
    if not parts or parts == ["PWD"] or not _HARMLESS.isdisjoint(parts):
        return False
    return parts[-1] in _LAST or any(part in _PARTS or part.endswith(_ENDS) for part in parts)


def in_setting(key: str, value: Any) -> bool:
    """Whether the value of a veRL key or field is a secret, by the name of the key or the form of the value."""
    if isinstance(value, dict):
        return any(in_setting(str(name), item) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return any(in_setting(key, item) for item in value)
    if not isinstance(value, str) or not value or _ELSEWHERE.search(value):
        return False
    return _names_secret(key) or looks_secret(value)


def _names_secret(key: str) -> bool:
    variable = re.split(r"[.+@/]", key)[-1]
    return _KEY.search(key) is not None or (variable.isupper() and is_secret(variable))


def looks_secret(text: str) -> bool:
    """Whether a text contains a token of a known kind or an address with a password."""
    return _LOOKS.search(text) is not None or _LOGIN.search(text) is not None


def redact(text: str) -> str:
    """`text` with `***` for the values of secrets in it. JSON stays JSON."""
    lower = text.lower()
    if looks := any(map(lower.__contains__, _LOOK_HINTS)):
        text = _LOOKS.sub(HIDDEN, _LOGIN.sub(rf"\1:{HIDDEN}", text))
    if "wandb" in lower:
        text = _WANDB.sub(rf"\1{HIDDEN}", text)
    named = (looks or any(map(lower.__contains__, _KINDS))) and any(map(lower.__contains__, _HINTS))
    if named and any(map(_FIGURES.sub("", lower).__contains__, _HINTS)):
        text = _NAMED.sub(_hide, text)
    if text != lower and any(map(text.__contains__, _VARIABLE_HINTS)):
        text = _ASSIGNED.sub(_hide_variable, text)
    return text


def redacted(key: str, value: Any) -> Any:
    """The value of a key, or `***` if it is a secret."""
    return HIDDEN if in_setting(key, value) else value


def redact_tree(value: Any) -> Any:
    """A JSON value without the secrets in its strings and under its keys."""
    if isinstance(value, dict):
        if _NUMBERS.issuperset(map(type, value.values())):  # the metrics of a step
            return value
        return {name: redact_tree(_named(str(name), item)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_tree(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def _named(key: str, value: Any) -> Any:
    named = isinstance(value, str) and value and _names_secret(key) and not _ELSEWHERE.search(value)
    return HIDDEN if named else value


def _hide(match: re.Match[str]) -> str:
    before, value = match.groups()
    if before[-1].isspace() and not re.search(r"[:=]\s$", before) and not before.startswith("--"):
        return match[0]  # a sentence, not an option
    return match[0] if _is_name(match, value) else before + _hidden(value)


def _hide_variable(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    secret = name != "KEY" and is_secret(name) and not _is_name(match, value)  # KEY=VALUE is from a help text
    return before + _hidden(value) if secret else match[0]


def _is_name(match: re.Match[str], value: str) -> bool:
    """Whether the value repeats the name: `env.HF_TOKEN: HF_TOKEN looks like a secret`."""
    before = match.string[: match.end(1)].rstrip(":= ")
    return before.endswith(value) and not before.removesuffix(value)[-1:].isalnum()


def _hidden(value: str) -> str:
    quote = value[0] if value[0] in "'\"" else ""
    return f"{quote}{HIDDEN}{quote}"
