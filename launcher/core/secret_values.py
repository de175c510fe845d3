"""Secrets by value: keyed hashes of the secret variables at the start of a run, compared with words in text.

Key and hashes are two files next to the folder of runs, readable by their owner only. No run folder contains them.
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from string import ascii_letters, digits

from launcher.core import paths
from launcher.core.secret_forms import HIDDEN, is_secret

_VALUE = re.compile(r"(?![/~])[^\s'\"]{16,}")  # kept values; a path is not a secret
_SIGN = re.compile(r"[^A-Za-z0-9_]")
_ALNUM = "A-Za-z0-9"
_KEY = 32  # bytes
_PAUSE = 2.0  # seconds between two looks at the files: another process may have started a run


def keep(env: Mapping[str, str]) -> None:
    """Stores hashes of an environment's secret values, with their lengths and separators. Raises OSError."""
    _known.read()
    values = {value for name, value in env.items() if is_secret(name) and _VALUE.fullmatch(value)}
    fresh = sorted(value for value in values if not _known.has(value))
    if fresh and (key := _key(make=True)):
        rows = [f"{len(each)} {_hash(each, key)} {''.join(sorted(set(_SIGN.findall(each))))}\n" for each in fresh]
        descriptor = os.open(_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join(rows))
        _known.read()


def mask(text: str) -> str:
    """The text with `***` for each word, or part between separators, that equals a stored value."""
    _known.look()
    if _known.run and _known.run in text.encode(errors="replace").translate(_known.members):
        for word in _known.long.findall(text):
            if (masked := _known.mask(word)) != word:
                text = text.replace(word, masked)
    return text


class _Known:
    """The stored hashes of this user, reloaded when their file changes."""

    def __init__(self) -> None:
        self._looked = -_PAUSE
        self._seen: tuple[Path, int, float] | None = None
        self._patterns: tuple[re.Pattern[str], ...] = ()
        self.mask = lru_cache(maxsize=1 << 15)(self._mask)
        self._key, self._hashes = b"", frozenset[str]()
        self.long = re.compile("")  # words of the signs of all values, as long as the shortest of them
        self.members, self.run = b"", b""  # bytes of such words become `x`: most lines have no run of them

    def look(self) -> None:
        """Reads the files, at most once in `_PAUSE` seconds."""
        if (now := time.monotonic()) - self._looked > _PAUSE:
            self._looked = now
            self.read()

    def read(self) -> None:
        """Reads the files if they have changed."""
        seen, rows = None, list[list[str]]()
        with contextlib.suppress(OSError, ValueError):
            status = _file().stat()
            seen = (_file(), status.st_size, status.st_mtime)
            if seen == self._seen:
                return
            self._key = _key()
            rows = [line.split(" ") for line in _file().read_text("utf-8").splitlines()]
        rows = [row for row in rows if len(row) == 3 and row[0].isdecimal() and self._key]
        self._seen, self._hashes = seen, frozenset(row[1] for row in rows)
        kinds = sorted({(int(row[0]), re.escape(row[2])) for row in rows})
        starts = [rf"(?<![{_ALNUM}])(?=([{_ALNUM}_{signs}]{{{length}}})(?![{_ALNUM}]))" for length, signs in kinds]
        self._patterns = tuple(map(re.compile, starts))
        self.run = b""
        if rows:
            self.long = re.compile(rf"[{_ALNUM}_{''.join(signs for _, signs in kinds)}]{{{kinds[0][0]},}}")
            word = f"{ascii_letters}{digits}_{''.join(row[2] for row in rows)}".encode()
            self.members = bytes(b"x"[0] if byte in word else 0 for byte in range(256))
            self.run = b"x" * kinds[0][0]
        self.mask.cache_clear()

    def has(self, value: str) -> bool:
        return bool(self._hashes) and _hash(value, self._key) in self._hashes

    def _mask(self, word: str) -> str:
        for pattern in self._patterns:
            for match in reversed([match for match in pattern.finditer(word) if self.has(match[1])]):
                word = word[: match.start()] + HIDDEN + word[match.end(1) :]
        return word


_known = _Known()


def _hash(value: str, key: bytes) -> str:
    return blake2b(value.encode(errors="replace"), key=key, digest_size=12).hexdigest()


def _file() -> Path:
    return paths.runs_dir().parent / "secret-hashes"


def _key(*, make: bool = False) -> bytes:
    """The key of the hashes, made by the first start; empty while another process writes it."""
    file = _file().with_name("secret-key")
    if make:
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_bytes(_KEY))
            os.close(descriptor)
    key = file.read_bytes()
    return key if len(key) == _KEY else b""
