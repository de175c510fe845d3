"""Parses a bash script into a tree; tolerant: unclosed parts end with the text, and stray words are skipped."""

import re
from collections.abc import Iterator

from launcher.scripts.bash import tree
from launcher.scripts.bash.scanning import BLANK, TORN, end_of_word, past

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]=]*)\])?(\+?)=")
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-?|<>|>>|>\||[<>]&|<|>)|(&>>?)")
_OPERATOR = re.compile(r"&&|\|\||;;&|;&|;;|\|&|[;&|()\n]")
_DECLARES = ("export", "declare", "local", "readonly", "typeset")
_CLOSES = ("then", "do", "done", "fi", "else", "elif", "esac", "}", ")")
_DEEPEST = 50


class Parser:
    """Reads `text` from its beginning. `notes`: corrections to the text of a web page."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text.replace("\r\n", "\n"), 0
        self.notes: list[str] = []
        self._heredocs: list[tuple[tree.Simple, int, str, bool, bool]] = []
        self._depth = 0

    def script(self) -> tree.Sequence:
        """The whole script."""
        found = tree.Sequence()
        while self.at < len(self.text):
            found.items += self._list().items
            if self.at < len(self.text) and not self._operator(";;", ";&", ";;&", ")"):
                self._word()  # a stray `fi` or `}`
        return found

    def _list(self, *ends: str) -> tree.Sequence:
        """Commands up to one of the words in `ends`, which stays, or the end of an outer part."""
        found = tree.Sequence()
        self._depth += 1
        while self._depth < _DEEPEST:
            self._lines()
            if self.at >= len(self.text) or self._peek_word() in (*ends, *_CLOSES) or self._at(";;", ";&", ")"):
                break
            before = self.at
            found.items.append(self._chain())
            self._blanks()
            if not self._operator("&", ";", "\n") and self.at == before:
                self.at += 1  # not a command
        if self._depth >= _DEEPEST:
            self.at = len(self.text)
        self._depth -= 1
        return found

    def _chain(self) -> tree.Node:
        parts: list[tuple[str, tree.Node]] = [("", self._pipeline())]
        while sign := self._operator("&&", "||"):
            self._lines()
            parts.append((sign, self._pipeline()))
        return parts[0][1] if len(parts) == 1 else tree.Chain(parts)

    def _pipeline(self) -> tree.Node:
        negated = False
        while self._peek_word() in ("!", "time"):
            negated ^= self._word() == "!"
        commands = [self._command()]
        while self._operator("|&", "|"):
            self._lines()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else tree.Pipeline(commands, negated)

    def _command(self) -> tree.Node:
        word = self._peek_word()
        if self._at("(("):
            return tree.Sum(self._between("((", "))"))
        if self._at("("):
            self.at += 1
            body = self._list()
            self._operator(")")
            return tree.Group(body, True, self._redirections())
        if word == "{":
            self._word()
            body = self._list("}")
            self._expect("}")
            return tree.Group(body, False, self._redirections())
        if word == "[[":
            return tree.Test(self._condition())
        found = self._compound(word)
        if found is not None:
            self._redirections()
            return found
        if word == "function":
            self._word()
            return self._function(self._word())
        if (named := re.compile(r"([\w.:-]+)[ \t]*\([ \t]*\)").match(self.text, self.at)) is not None:
            self.at = named.end()
            return self._function(named[1])
        return self._simple()

    def _compound(self, word: str) -> tree.Node | None:
        if word == "if":
            return self._if()
        if word in ("while", "until"):
            self._word()
            condition = self._list("do")
            return tree.While(condition, self._body(), word == "until")
        if word in ("for", "select"):
            return self._for()
        return self._case() if word == "case" else None

    def _if(self) -> tree.If:
        branches = []
        otherwise = tree.Sequence()
        self._word()
        while True:
            condition = self._list("then")
            self._expect("then")
            branches.append((condition, self._list("elif", "else", "fi")))
            if not self._expect("elif"):
                break
        if self._expect("else"):
            otherwise = self._list("fi")
        self._expect("fi")
        return tree.If(branches, otherwise)

    def _for(self) -> tree.Node:
        self._word()
        self._blanks()
        if self._at("(("):
            start, test, step = ([*self._between("((", "))").split(";"), "", ""])[:3]
            self._lines()
            self._operator(";")
            return tree.Count(start, test, step, self._body())
        name, words = self._word(), None
        self._lines()
        if self._expect("in"):
            words = []
            while self.at < len(self.text) and not self._operator(";", "\n"):
                before = self.at
                words.append(self._word())
                self._blanks()
                if self.at == before:
                    break
        else:
            self._operator(";")
        return tree.For(name, words, self._body())

    def _body(self) -> tree.Sequence:
        self._lines()
        braces = self._peek_word() == "{"
        self._word() if braces else self._expect("do")
        body = self._list("}" if braces else "done")
        self._expect("}" if braces else "done")
        return body

    def _case(self) -> tree.Case:
        self._word()
        found = tree.Case(self._word(), [])
        self._lines()
        self._expect("in")
        while self.at < len(self.text):
            self._lines()
            if self._expect("esac"):
                break
            self._operator("(")
            patterns: list[str] = []
            while self.at < len(self.text):
                patterns.append(self._word())
                if not self._operator("|"):
                    break
            if not self._operator(")"):
                break
            body = self._list("esac")
            found.branches.append((patterns, body, self._operator(";;&", ";&", ";;")))
        return found

    def _function(self, name: str) -> tree.Function:
        self._blanks()
        if self._operator("("):
            self._operator(")")
        self._lines()
        return tree.Function(name, self._command())

    def _simple(self) -> tree.Simple:
        end = self.text.rfind("\n", 0, self.at)
        above = self.text[self.text.rfind("\n", 0, max(end, 0)) + 1 : max(end, 0)]
        found = tree.Simple(line=self.text.count("\n", 0, self.at) + 1, above=above)
        while True:
            self._blanks()
            if self.at >= len(self.text) or (_OPERATOR.match(self.text, self.at) and not self._at("&>")):
                break
            if self._redirection(found):
                continue
            declares = bool(found.words) and found.words[0] in _DECLARES
            match = _ASSIGNMENT.match(self.text, self.at) if not found.words or declares else None
            if match and (not declares or self.text.startswith("(", match.end())):
                self.at = match.end()
                items = self._items() if self._at("(") else None
                value = self._raw() if items is None else ""
                found.assignments.append(tree.Assignment(match[1], match[2], bool(match[3]), value, items))
            else:
                before = self.at
                found.words.append(self._raw())
                if self.at == before:
                    break
        return found

    def _items(self) -> tuple[str, ...]:
        self.at += 1
        items = []
        while self.at < len(self.text) and not self._at(")"):
            before = self.at
            self._lines()
            if self.at < len(self.text) and not self._at(")") and (word := self._raw()):
                items.append(word)
            self.at += self.at == before  # not a part of a word here
        self.at += 1
        return tuple(items)

    def _redirections(self) -> list[tree.Redirection]:
        found = tree.Simple()
        self._blanks()
        while self._redirection(found):
            self._blanks()
        return found.redirections

    def _redirection(self, found: tree.Simple) -> bool:
        match = _REDIRECTION.match(self.text, self.at)
        if match is None or self.text.startswith(("<(", ">("), match.start()):
            return False
        sign, self.at = match[1] or match[2], match.end()
        self._blanks()
        word = self._raw()
        if sign in ("<<", "<<-"):
            name = re.sub(r"['\"\\]", "", word)
            self._heredocs.append((found, len(found.redirections), name, sign == "<<-", name != word))
        found.redirections.append(tree.Redirection(sign, word))
        return True

    def _condition(self) -> str:
        start = self.at + 2
        self.at = start
        while self.at < len(self.text):
            self._blanks()
            if self.text.startswith("]]", self.at):
                break
            end = end_of_word(self.text, self.at, f"{BLANK}\n")
            self.at = max(end, self.at + 1)
        found = self.text[start : self.at]
        self.at = min(len(self.text), self.at + 2)
        return found

    def _between(self, opening: str, closing: str) -> str:
        start = self.at + len(opening)
        end = max(start, past(self.text, self.at + 1, "(") - len(closing))
        self.at = min(len(self.text), end + len(closing))
        return self.text[start:end]

    def _word(self) -> str:
        """The next word; skips blanks before it."""
        self._blanks()
        return self._raw()

    def _raw(self) -> str:
        start = self.at
        self.at = end_of_word(self.text, start)
        return self.text[start : self.at].replace("\\\n", "")

    def _peek_word(self) -> str:
        self._blanks()
        return self.text[self.at : end_of_word(self.text, self.at)] if not self._at("\n") else ""

    def _expect(self, word: str) -> bool:
        if self._peek_word() == word:
            self.at += len(word)
            return True
        return False

    def _at(self, *signs: str) -> bool:
        return self.text.startswith(signs, self.at)

    def _operator(self, *signs: str) -> str:
        self._blanks()
        match = _OPERATOR.match(self.text, self.at)
        if match is None or match[0] not in signs or self._at("&>"):
            return ""
        self.at = match.end()
        if match[0] == "\n":
            for found, place, name, tabs, literal in self._heredocs:
                lines: list[str] = []
                for line in self._until(name, tabs):
                    lines.append(line)
                found.redirections[place] = tree.Redirection("<<", "".join(lines), literal)
            self._heredocs.clear()
        return match[0]

    def _lines(self) -> None:
        """Skips blanks, comments and ends of lines."""
        self._blanks()
        while self._operator("\n"):
            self._blanks()

    def _blanks(self) -> None:
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in BLANK:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif found := TORN.match(self.text, self.at):
                self.notes.append(
                    "a backslash is followed by blanks or a comment; the next line is imported, "
                    "although a shell would end the command there"
                )
                self.at = found.end()
            elif letter == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                break

    def _until(self, name: str, tabs: bool) -> Iterator[str]:
        while self.at < len(self.text):
            end = self.text.find("\n", self.at) + 1 or len(self.text)
            line, self.at = self.text[self.at : end], end
            line = line.lstrip("\t") if tabs else line
            if line.strip() == name:
                return
            yield line
