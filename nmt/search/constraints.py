"""Constraints: what every hypothesis must say, and how much of it a hypothesis has said.

The alternatives of all constraints of a sentence are one trie (Hu et al. 2019, "Improved lexically constrained decoding
for translation and monolingual rewriting"). `nmt.search.banks` searches with them.
"""

from collections.abc import Mapping, Sequence
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


class Outlook(NamedTuple):
    """What a hypothesis may say next.

    Attributes:
        need: the number of tokens that suffice to meet all constraints.
        special: the tokens of alternatives.
        starting, inside: what is needed after any other token that starts a word, or does not.
    """

    need: int
    special: Mapping[int, Special]
    starting: int
    inside: int


class Trie:
    """The alternatives of the constraints of one sentence."""

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
            min(len(each) for each in constraint.alternatives if not constraint.whole or self._starts(each[0]))
            for constraint in constraints
        ]
        self._tokens = list(dict.fromkeys(token for path in self._missing for token in path))
        self._outlooks: dict[Said, Outlook] = {}
        self._next: dict[tuple[Said, int], Said] = {}

    def outlook(self, said: Said) -> Outlook:
        """What a hypothesis may say next."""
        if said not in self._outlooks:
            special = {token: self._special(said, token) for token in self._tokens}
            needs = [self._need(self._after(said.met, (*said.path, other), said.edge)) for other in (_START, _INSIDE)]
            self._outlooks[said] = Outlook(self._need(said), special, *needs)
        return self._outlooks[said]

    def _special(self, said: Said, token: int) -> Special:
        following = self.after(said, token)
        path, met = following.path, following.met
        found = self._open(path, following.edge) if path else {}
        unmet = [number for number in found if not met >> number & 1]
        meets, first = [number for number in unmet if not found[number]], len(path) == 1
        again = [] if unmet else [number for number, missing in found.items() if not missing]
        return Special(self._need(following), unmet if first else [], meets, unmet, again, first)

    def after(self, said: Said, token: int) -> Said:
        """What is said after one more token."""
        key = said, token
        if key not in self._next:
            self._next[key] = self._after(said.met, (*said.path, token), said.edge)
        return self._next[key]

    def _after(self, met: int, path: tuple[int, ...], edge: bool) -> Said:
        while path not in self._missing or (path and not self._open(path, edge)):
            length = 1
            for end in range(len(path) - 1, 0, -1):
                edge_after = self._starts(path[end]) or self._ends(path[end - 1])
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
        if edge or self._starts(path[0]):
            return found
        return {number: missing for number, missing in found.items() if not self.constraints[number].whole}

    def _starts(self, token: int) -> bool:
        return token != _INSIDE if self._edges is None or token < 0 else self._edges.starts[token]

    def _ends(self, token: int) -> bool:
        return self._edges is None or (token >= 0 and self._edges.ends[token])

    def _need(self, said: Said) -> int:
        left = {n: count for n, count in enumerate(self._shortest) if not said.met >> n & 1}
        begun = self._open(said.path, said.edge) if said.path else {}
        saved = [left[number] - missing for number, missing in begun.items() if number in left]
        return sum(left.values()) - max([0, *saved])
