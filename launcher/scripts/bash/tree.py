"""The commands of a bash script as a tree. Words stay as written; `words` expands them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Assignment:
    """`NAME=value`, `NAME[index]+=value`, or `NAME=(items)`."""

    name: str
    index: str | None
    append: bool
    value: str
    items: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Redirection:
    """`>file`, `<<<word`; for a here-document, `word` is the text; `literal`: nothing in it expands."""

    operator: str
    word: str
    literal: bool = False


@dataclass
class Simple:
    """Assignments (also arrays of `declare`), words and redirections; `above`: the previous line of text."""

    assignments: list[Assignment] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    line: int = 0
    above: str = ""


@dataclass
class Pipeline:
    commands: "list[Node]"
    negated: bool = False


@dataclass
class Chain:
    """Pipelines connected by `&&` and `||`; the first has no operator."""

    parts: "list[tuple[str, Node]]"


@dataclass
class Sequence:
    items: "list[Node]" = field(default_factory=list)


@dataclass
class If:
    branches: "list[tuple[Sequence, Sequence]]"
    otherwise: Sequence


@dataclass
class For:
    """`for NAME in WORDS`; without words, "$@"."""

    name: str
    words: list[str] | None
    body: Sequence


@dataclass
class Count:
    """`for ((start; test; step))`."""

    start: str
    test: str
    step: str
    body: Sequence


@dataclass
class While:
    condition: Sequence
    body: Sequence
    until: bool


@dataclass
class Case:
    word: str
    branches: list[tuple[list[str], Sequence, str]]


@dataclass
class Group:
    body: Sequence
    subshell: bool
    redirections: list[Redirection] = field(default_factory=list)


@dataclass
class Function:
    name: str
    body: "Node"


@dataclass
class Test:
    """`[[ ... ]]`: the text between."""

    text: str


@dataclass
class Sum:
    """`(( ... ))`: the text between."""

    text: str


Node = Simple | Pipeline | Chain | Sequence | If | For | Count | While | Case | Group | Function | Test | Sum
