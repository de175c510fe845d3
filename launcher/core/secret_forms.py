"""Recognizes secrets by the name of a variable or setting, by form (secret_forms.toml), or as a random word near a
name.

More names count as secret for variables (capitals only) than for veRL keys: `prompt_key` and `pad_token` are settings.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from launcher.core.tables import record, tables_of

HIDDEN = "***"

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

_PART = re.compile(r"@(\w+)@")
# Most lines of a log have none of these, and then no secret: tokens of a known kind, names, the other forms.
_RUN = re.compile(r"[-_.][A-Za-z0-9]{8}[A-Za-z0-9_-]{4}")
_BARE = ("AKIA", "ASIA", "LTAI", "AIza", "eyJ", "aGZf", "LS0t", ":AA", "1//0")
_KINDS = ("key", "token", "secret", "pass", "pwd", "cred", "bearer", "auth", "cookie", "_pat", "jwt", "dsn", "kennwort")
_VARIABLES = ("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "BEARER", "AUTH", "COOKIE", "PAT", "JWT", "DSN", "SAS")
_FOREIGN = ("contraseña", "密码", "口令", "пароль")
_OTHERS = ("://", " -", "--", "?", "&", "$", "%2f%2f", "basic ", "bearer", "login", "wandb", "pin:")
# after one of the kinds: the remaining name, and separators before a value
_END = (
    r"(?:w(?:or)?[dt]|code|phrase|e|entials?|orization|str|bytes)?s?(?:[_-]?(?:id|[\da-z]))?"
    r"(?:[\"'`\])*\\&:=>|,→(-]|\s+(?:[=:|>\"'→<-]|\S{0,80}\d|is\b|was\b|set\b|\s)|\s*\n)"
)
# `"perf/x_token": 0.5`: a number is no secret, whatever its name; its name cannot be longer
_FIGURES = re.compile(r"(?<![\w./@+-])['\"]?[\w./@+-]{1,80}['\"]?: ?-?\d[\d.]{0,30}(?:e[-+]\d{1,3})?(?=[\s,}\]]|$)")
_REFERENCE = re.compile(r"\$\{|\*\*\*")
_NOTHING = re.compile(
    rf"{_REFERENCE.pattern}|<[\w -]+>|(?i:none|null|true|false|nan)(?![A-Za-z0-9])"
    r"|-?[\d.]+(?:e[-+]?\d+)?(?=[\s,'\"})\]]|$)"
)
_BY_NAME = ("after a name", "named")  # kinds of forms

_RANDOM = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_NEAR = re.compile(
    r"(?:(?<![a-z])(?:key|token|pat|auth|sas)s?|secrets?|passw\w+|passphrase|passcode|pwd|credentials?|creds|cookies?|bearer"
    r"|authorization|login|licen[sc]e|webhook|signature)(?![a-z])",
    re.IGNORECASE,
)
_SHORTEST, _LIKELY = 12, 8  # letters of a random word, of a likely value
_BEFORE, _AFTER = 48, 16  # characters between a random word and a name


@dataclass(frozen=True)
class Form:
    """A row of secret_forms.toml, which explains its fields."""

    kind: str
    pattern: str
    sample: str
    hints: tuple[str, ...] = ()
    likely: bool = False
    case: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        text = self.pattern
        while _PART.search(text):
            text = _PART.sub(lambda match: _tables()["parts"][match[1]], text)
        return re.compile(text, re.VERBOSE if self.case else re.VERBOSE | re.IGNORECASE)

    def hide(self, text: str) -> str:
        """The text with `***` for secrets of this form."""
        kept: list[str] = []
        done = at = 0
        while match := self.regex.search(text, at):
            start, end = _value(match)
            if self.accepts(text, start, end):
                kept += [text[done:start], HIDDEN]
                done = end
            at = max(end, match.start() + 1)
        return "".join([*kept, text[done:]])

    def accepts(self, text: str, start: int, end: int) -> bool:
        """Whether a value at this place is a secret that is not yet hidden."""
        nothing = _NOTHING if self.kind in _BY_NAME else _REFERENCE
        return not nothing.match(text, start) and (_is_likely(text[start:end]) or not self.likely)


@cache
def _tables() -> Mapping[str, Any]:
    return tables_of(__file__)


@cache
def forms(*kinds: str) -> tuple[Form, ...]:
    """The rows of secret_forms.toml of these kinds [default: all]."""
    return tuple(record(Form, row) for row in _tables()["form"] if not kinds or row["kind"] in kinds)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return Form("", pattern, "").regex


def _value(match: re.Match[str]) -> tuple[int, int]:
    return match.span("plain" if match["plain"] is not None else "quoted")


def is_secret(name: str) -> bool:
    """Whether a variable of this name probably holds a secret: HF_TOKEN, GITHUB_PAT, MY_PASS; not MAX_TOKENS, PWD."""
    parts = re.findall("[A-Z]+", name.upper())
    if not parts or parts == ["PWD"] or not _HARMLESS.isdisjoint(parts):
        return False
    return parts[-1] in _LAST or any(part in _PARTS or part.endswith(_ENDS) for part in parts)


def names_secret(key: str) -> bool:
    """Whether a veRL key, a field or a variable in it names a secret: `trainer.api_key`, `env_vars.GITHUB_PAT`."""
    variable = re.split(r"[.+@/]", key)[-1]
    return _regex("(?:@word@|@camel@)$").search(key) is not None or (variable.isupper() and is_secret(variable))


def looks_secret(text: str) -> bool:
    """Whether a text contains a token of a known kind, a private key or an address with a password."""
    return "PRIVATE KEY-----" in text or any(form.hide(text) != text for form in forms("token", "login"))


def hide(text: str) -> str:
    """Inert text with `***` for secrets of a known form or next to a name. JSON stays JSON."""
    lower = text.lower()
    if _RUN.search(text) is not None or any(map(text.__contains__, _BARE)):
        text = _hide(text, lower, "token")
    if any(map(lower.__contains__, _OTHERS)):
        text = _hide(text, lower, "login", "number", "other")
    if named := _named(lower):
        text = _hide(text, lower, "number")
    if (named and _named(_FIGURES.sub("", lower))) or any(map(text.__contains__, _VARIABLES)):
        text = _RANDOM.sub(_hide_random, _hide_named(_hide(text, lower, "named")))
    return text


def _named(lower: str) -> bool:
    """Whether a secret's name may precede a value."""
    found = filter(lower.__contains__, _KINDS if lower.isascii() else (*_KINDS, *_FOREIGN))
    return any(_end_of(kind).search(lower) for kind in found)


@cache
def _end_of(kind: str) -> re.Pattern[str]:
    return re.compile(kind + _END)


def _hide(text: str, lower: str, *kinds: str) -> str:
    for form in forms(*kinds):
        if not form.hints or any(map(lower.__contains__, form.hints)):
            text = form.hide(text)
    return text


def _hide_named(text: str) -> str:
    """The text with `***` for each value that follows a secret's name."""
    kept: list[str] = []
    done = at = 0
    while name := _regex("@name@").search(text, at):
        at = name.end()
        if (name["variable"] and not is_secret(name[0])) or name[0] == "KEY":  # KEY=VALUE is from a help text
            continue
        for form in forms("after a name"):
            if (match := form.regex.match(text, at)) is None:
                continue
            start, end = _value(match)
            value, certain = text[start:end], form.likely or not name["camel"] or _is_likely(text[start:end])
            # `env.HF_TOKEN: HF_TOKEN looks like a secret`
            if certain and form.accepts(text, start, end) and value != name[0] and not value.endswith(f".{name[0]}"):
                kept += [text[done:start], HIDDEN]
                done = at = end
                break
    return "".join([*kept, text[done:]])


def _hide_random(match: re.Match[str]) -> str:
    around = match.string[max(match.start() - _BEFORE, 0) : match.start()], match.string[match.end() :][:_AFTER]
    named = any(map(_random, re.split("[+/_-]", match[0]))) and any(map(_NEAR.search, around))
    return HIDDEN if named else match[0]


def _random(word: str) -> bool:
    """Whether letters, capitals and digits alternate too much for a name: `Zx9kQ7vLmN3p`, not `Qwen2ForCausalLM`."""
    kinds = ["A" if letter.isupper() else "a" if letter.islower() else "0" for letter in word]
    groups = [kind for kind, _ in itertools.groupby(kinds)]
    share = len(groups) / max(len(word), _SHORTEST)
    return len(word) >= _SHORTEST and len(set(groups)) == 3 and (share > 0.6 or (share > 0.4 and groups.count("0") > 1))


def _is_likely(value: str) -> bool:
    """Whether a value may be a secret: not a word, a number, a path, a placeholder."""
    letters = any(map(str.isalpha, value)) and any(map(str.isdigit, value))
    return len(value) >= _LIKELY and letters and value[0] not in "/~.<$" and "=" not in value.rstrip("=")
