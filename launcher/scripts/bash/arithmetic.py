"""`$(( ))`, `(( ))` and `let`: integers as in bash."""

import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+#\w+|\d+|[A-Za-z_]\w*(?:\[[^\]]*\])?"
    r"|\*\*|<<=|>>=|\+\+|--|&&|\|\||[-+*/%&|^]=|==|!=|<=|>=|<<|>>|[-+*/%<>=!~?:(),&|^])",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_SET = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
_WORD = 1 << 64
_DEEPEST = 40


class NotANumber(Exception):
    """An expression that bash's arithmetic, or this reader, does not accept."""


def wrapped(number: int) -> int:
    """A number in bash's 64 bits."""
    number %= _WORD
    return number - _WORD if number >= _WORD // 2 else number


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise NotANumber("division by 0")
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


_DO: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "<<": lambda a, b: a << (b % 64),
    ">>": lambda a, b: a >> (b % 64),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


class Arithmetic:
    """One expression. `get` and `put` access the script's variables, which contain text."""

    def __init__(self, text: str, get: Callable[[str], str], put: Callable[[str, str], None], depth: int = 0) -> None:
        self._get, self._put, self._depth = get, put, depth
        self._tokens, self._at = _tokens(text), 0
        self._skipping = False  # the operands that `&&`, `||` and `?` leave out

    def value(self) -> int:
        """Its value. Raises NotANumber."""
        if not self._tokens:
            return 0
        found = self._comma()
        if self._at < len(self._tokens):
            raise NotANumber(self._tokens[self._at])
        return found

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        token = self._next()
        if token and token in wanted:
            self._at += 1
            return token
        return ""

    def _skipped(self, part: Callable[[], int], skip: bool) -> int:
        """Parses a part of the expression; does not evaluate it if `skip`."""
        before, self._skipping = self._skipping, self._skipping or skip
        found = part()
        self._skipping = before
        return found

    def _comma(self) -> int:
        found = self._choice()
        while self._take(","):
            found = self._choice()
        return found

    def _choice(self) -> int:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotANumber("too deep")
        name = self._next()
        after = "".join(self._tokens[self._at + 1 : self._at + 2])
        if _NAME.match(name) and after in _SET:
            self._at += 2
            before = 0 if after == "=" else self._variable(name)
            found = self._choice()
            if after != "=":
                found = self._do(after[:-1], before, found)
            self._set(name, found)
        else:
            found = self._conditional()
        self._depth -= 1
        return found

    def _conditional(self) -> int:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotANumber("too deep")
        found = self._binary(0)
        if self._take("?"):
            yes = self._skipped(self._comma, not found)
            if not self._take(":"):
                raise NotANumber("?")
            no = self._skipped(self._conditional, bool(found))
            found = yes if found else no
        self._depth -= 1
        return found

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._power()
        found = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            if sign in ("&&", "||"):
                decided = bool(found) == (sign == "||")
                other = self._skipped(lambda: self._binary(level + 1), decided)
                found = int(sign == "||") if decided else int(bool(other))
            else:
                found = self._do(sign, found, self._binary(level + 1))
        return found

    def _do(self, sign: str, left: int, right: int) -> int:
        return 0 if self._skipping else wrapped(int(_DO[sign](left, right)))

    def _power(self) -> int:
        base = self._unary()
        if self._take("**"):
            exponent = self._power()
            if not 0 <= exponent <= 1000:
                raise NotANumber("**")
            return wrapped(base**exponent)
        return base

    def _unary(self) -> int:
        for sign, change in (("-", lambda a: -a), ("+", lambda a: a), ("!", lambda a: int(not a)), ("~", lambda a: ~a)):
            if self._take(sign):
                return wrapped(int(change(self._unary())))
        if step := self._take("++", "--"):
            if not _NAME.match(self._next()):  # two signs
                return self._unary()
            self._at += 1
            return self._stepped(self._tokens[self._at - 1], step)
        if self._take("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise NotANumber("too deep")
            found = self._comma()
            self._depth -= 1
            if not self._take(")"):
                raise NotANumber("(")
            return found
        token = self._next()
        self._at += 1
        if token[:1].isdigit():
            return _number(token)
        if not _NAME.match(token):
            raise NotANumber(token or "end")
        found = self._variable(token)
        if step := self._take("++", "--"):
            self._stepped(token, step)
        return found

    def _stepped(self, name: str, step: str) -> int:
        found = wrapped(self._variable(name) + (1 if step == "++" else -1))
        self._set(name, found)
        return found

    def _set(self, name: str, value: int) -> None:
        if not self._skipping:
            self._put(name, str(value))

    def _variable(self, name: str) -> int:
        if self._skipping:
            return 0
        text = self._get(name).strip()
        if re.fullmatch(r"-?\d+", text):
            return wrapped(-_number(text[1:]) if text[0] == "-" else _number(text))
        return Arithmetic(text, self._get, self._put, self._depth + 5).value()


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.strip()
    if len(text) > 2000:
        raise NotANumber("too long")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotANumber(text[at:])
        found.append(match[1])
        at = match.end()
    return found


def _number(text: str) -> int:
    if len(text) > 25:
        raise NotANumber(text)
    try:
        if "#" in text:
            base, _, digits = text.partition("#")
            if "_" in digits or not 2 <= int(base) <= 36:  # bash goes to 64, with digits of its own
                raise NotANumber(text)
            return wrapped(int(digits, int(base)))
        octal = len(text) > 1 and text[0] == "0" and text[1] not in "xX"
        return wrapped(int(text, 8 if octal else 0))
    except ValueError:
        raise NotANumber(text) from None
