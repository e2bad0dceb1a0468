"""Constraints: what every hypothesis must say, and how much of it a hypothesis has said.

The alternatives of all constraints of a sentence are one trie (Hu et al. 2019, "Improved lexically constrained decoding
for translation and monolingual rewriting"). `nmt.search.banks` searches with them.
"""

from collections.abc import Sequence
from typing import NamedTuple

_START, _INSIDE = -1, -2  # any token of no alternative, which starts a word or does not


class Constraint(NamedTuple):
    """What a hypothesis must say.

    Attributes:
        alternatives: sequences of tokens, one of which must be said; one of them must be able to begin after any token.
        slots: the source slots that it translates. It may begin where a step has at least as much weight on them
            together as on any other slot, or where nothing else can come; without slots or weights, anywhere.
        whole: whether the tokens are words, which begin and end at an edge of words.
    """

    alternatives: Sequence[Sequence[int]]
    slots: Sequence[int] = ()
    whole: bool = True

    @property
    def longest(self) -> int:
        """The number of tokens of the longest alternative."""
        return max(map(len, self.alternatives))


class Edges(NamedTuple):
    """The edges of words: between two tokens if the second `starts` a word or the first `ends` one, by token."""

    starts: Sequence[bool]
    ends: Sequence[bool]


class Said(NamedTuple):
    """What a hypothesis has said.

    Attributes:
        met: the constraints that are met, as the bits of a number.
        path: the last tokens, as far as they begin an alternative. Whether they meet it, the next token says.
        edge: whether the token before the path ends a word.
    """

    met: int = 0
    path: tuple[int, ...] = ()
    edge: bool = False


class Special(NamedTuple):
    """A token of an alternative as the next one of a hypothesis.

    Attributes:
        need: the number of tokens that are needed after it.
        begins: the constraints that it may begin; none if it goes on.
        meets: the constraints that it meets; parts: those of which it says a part.
        repeats: those that it meets once more, unless it may go on to another one.
        first: whether it is the first token of its path.
    """

    need: int
    begins: Sequence[int]
    meets: Sequence[int]
    parts: Sequence[int]
    repeats: Sequence[int]
    first: bool


class Outlook:
    """What a hypothesis may say next. Each state of a trie has one, which is made once.

    Attributes:
        said: what it has said.
        met: for each constraint, whether it is met.
        need: the number of tokens that suffice to meet all constraints.
        starting, inside: what is needed after an ordinary token that starts a word, or does not.
        special: the tokens that are not ordinary: of alternatives.
    """

    def __init__(self, trie: "Trie", said: Said) -> None:
        self.trie, self.said, self.need = trie, said, trie.need(said)
        self.met = [bool(said.met >> number & 1) for number in range(len(trie.constraints))]
        others = (trie.after(said, other) for other in (_START, _INSIDE)) if said.path else (said, said)
        self.starting, self.inside = map(trie.need, others)
        self.special: dict[int, Special] = {}
        for token in trie.next_tokens(said.path):
            special = trie.special(said, token)
            ordinary = self.starting if trie.starts(token) else self.inside
            if special.parts or special.repeats or special.need != ordinary:
                self.special[token] = special
        self._next: dict[int, Outlook] = {}

    def after(self, token: int) -> "Outlook":
        """What a hypothesis may say after one more token."""
        found = self._next.get(token)
        if found is None:
            found = self._next[token] = self.trie.outlook(self.trie.after(self.said, token))
        return found


class Trie:
    """The alternatives of the constraints of one sentence.

    Attributes:
        tokens: of all alternatives.
    """

    def __init__(self, constraints: Sequence[Constraint], edges: Edges | None) -> None:
        self.constraints, self._edges = constraints, edges
        #: For each beginning of an alternative, the constraints by the number of tokens that are missing at least.
        self._missing: dict[tuple[int, ...], dict[int, int]] = {(): {}}
        for number, constraint in enumerate(constraints):
            for tokens in map(tuple, constraint.alternatives):
                for length in range(1, len(tokens) + 1):
                    missing = self._missing.setdefault(tokens[:length], {})
                    missing[number] = min(len(tokens) - length, missing.get(number, len(tokens)))
        #: The number of tokens that suffice to meet each constraint, wherever it begins.
        self._shortest = [
            min(len(each) for each in constraint.alternatives if not constraint.whole or self.starts(each[0]))
            for constraint in constraints
        ]
        self.tokens = frozenset(token for path in self._missing for token in path)
        self._children: dict[tuple[int, ...], list[int]] = {path: [] for path in self._missing}
        for path in self._missing:
            if path:
                self._children[path[:-1]].append(path[-1])
        self._outlooks: dict[Said, Outlook] = {}

    def outlook(self, said: Said) -> Outlook:
        """What a hypothesis may say next."""
        if said not in self._outlooks:
            self._outlooks[said] = Outlook(self, said)
        return self._outlooks[said]

    def next_tokens(self, path: tuple[int, ...]) -> Sequence[int]:
        """The tokens that may go on with an end of a path."""
        if not path:
            return self._children[path]
        ends = (path[start:] for start in range(len(path) + 1))
        return list(dict.fromkeys(token for end in ends for token in self._children.get(end, ())))

    def special(self, said: Said, token: int) -> Special:
        """What a token of an alternative means as the next one."""
        following = self.after(said, token)
        path, met = following.path, following.met
        found = self._open(path, following.edge) if path else {}
        unmet = [number for number in found if not met >> number & 1]
        meets, first = [number for number in unmet if not found[number]], len(path) == 1
        again = [] if unmet else [number for number, missing in found.items() if not missing]
        return Special(self.need(following), unmet if first else [], meets, unmet, again, first)

    def after(self, said: Said, token: int) -> Said:
        """What is said after one more token."""
        return self._after(said.met, (*said.path, token), said.edge)

    def _after(self, met: int, path: tuple[int, ...], edge: bool) -> Said:
        while path not in self._missing or (path and not self._open(path, edge)):
            length = 1
            for end in range(len(path) - 1, 0, -1):
                edge_after = self.starts(path[end]) or self._ends(path[end - 1])
                complete = [number for number, missing in self._open(path[:end], edge).items() if not missing]
                free = [n for n in complete if not met >> n & 1 and (edge_after or not self.constraints[n].whole)]
                if free:
                    met, length = met | 1 << free[0], end
                    break
            edge, path = self._ends(path[length - 1]), path[length:]
        return Said(met, path, edge)

    def _open(self, path: tuple[int, ...], edge: bool) -> dict[int, int]:
        """The constraints that a path may belong to, with the number of tokens that are missing."""
        found = self._missing.get(path, {})
        if edge or self.starts(path[0]):
            return found
        return {number: missing for number, missing in found.items() if not self.constraints[number].whole}

    def starts(self, token: int) -> bool:
        """Whether a word starts with a token."""
        return token != _INSIDE if self._edges is None or token < 0 else self._edges.starts[token]

    def _ends(self, token: int) -> bool:
        return self._edges is None or (token >= 0 and self._edges.ends[token])

    def need(self, said: Said) -> int:
        """The number of tokens that suffice to meet all constraints."""
        left = {n: count for n, count in enumerate(self._shortest) if not said.met >> n & 1}
        begun = self._open(said.path, said.edge) if said.path else {}
        saved = [left[number] - missing for number, missing in begun.items() if number in left]
        return sum(left.values()) - max([0, *saved])
