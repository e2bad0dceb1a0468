"""Constraints: what every hypothesis must say, and how much of it a hypothesis has said.

The alternatives of all constraints of a sentence are one trie (Hu et al. 2019, "Improved lexically constrained decoding
for translation and monolingual rewriting"). `nmt.search.banks` searches with them.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Constraint(NamedTuple):
    """What a hypothesis must say.

    Attributes:
        alternatives: sequences of tokens, one of which must be said.
        slots: the source slots that it translates. It may begin where a step has at least as much weight on them
            together as on any other slot, or where nothing else can come; without slots or weights, anywhere.
        whole: whether the tokens are words, which begin and end at an edge of words.
    """

    alternatives: Sequence[Sequence[int]]
    slots: Sequence[int] = ()
    whole: bool = True

    @property
    def shortest(self) -> int:
        """The number of tokens of the shortest alternative."""
        return min(map(len, self.alternatives))


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
        self._next: dict[tuple[Said, int], Said] = {}
        self._needs: dict[Said, int] = {}
        self._steps: dict[Said, dict[int, list[int]]] = {}

    def after(self, said: Said, token: int) -> Said:
        """What is said after one more token."""
        key = said, token
        if key not in self._next:
            self._next[key] = self._after(said.met, (*said.path, token), said.edge)
        return self._next[key]

    def _after(self, met: int, path: tuple[int, ...], edge: bool) -> Said:
        while path not in self._missing or (path and not self._open(path, edge)):
            for length in range(len(path) - 1, 0, -1):
                ends = self._starts(path[length]) or self._ends(path[length - 1])
                complete = [n for n, missing in self._open(path[:length], edge).items() if not missing]
                free = [n for n in complete if not met >> n & 1 and (ends or not self.constraints[n].whole)]
                if free:
                    met |= 1 << free[0]
                    break
            else:
                length = 1
            edge, path = self._ends(path[length - 1]), path[length:]
        return Said(met, path, edge)

    def _open(self, path: tuple[int, ...], edge: bool) -> dict[int, int]:
        """The constraints that a path may belong to, with the number of tokens that are missing."""
        found = self._missing.get(path, {})
        if edge or self._starts(path[0]):
            return found
        return {number: missing for number, missing in found.items() if not self.constraints[number].whole}

    def _starts(self, token: int) -> bool:
        return self._edges is None or self._edges.starts[token]

    def _ends(self, token: int) -> bool:
        return self._edges is None or self._edges.ends[token]

    def need(self, said: Said) -> int:
        """The number of tokens that suffice to meet all constraints."""
        if said not in self._needs:
            left = {n: each.shortest for n, each in enumerate(self.constraints) if not said.met >> n & 1}
            begun = self._open(said.path, said.edge) if said.path else {}
            saved = [left[number] - missing for number, missing in begun.items() if number in left]
            self._needs[said] = sum(left.values()) - max([0, *saved])
        return self._needs[said]

    def steps(self, said: Said) -> dict[int, list[int]]:
        """The tokens with which less is needed, and the constraints that may begin with each; none if one goes on."""
        if said not in self._steps:
            tokens: dict[int, list[int]] = {}
            for path, missing in self._missing.items():
                if len(path) == 1:
                    tokens[path[0]] = [number for number in missing if not said.met >> number & 1]
            tokens.update({path[-1]: [] for path in self._missing if said.path and path[:-1] == said.path})
            need = self.need(said)
            self._steps[said] = {each: n for each, n in tokens.items() if self.need(self.after(said, each)) < need}
        return self._steps[said]

    def complete(self, said: Said) -> list[int]:
        """The constraints that the path meets."""
        if not said.path:
            return []
        found = self._open(said.path, said.edge)
        return [number for number, missing in found.items() if not missing and not said.met >> number & 1]

    def repeated(self, said: Said) -> list[int]:
        """The constraints that the path has met once more, unless it may go on to another one."""
        found = self._open(said.path, said.edge) if said.path and said.met else {}
        if not all(said.met >> number & 1 for number in found):
            return []
        return [number for number, missing in found.items() if not missing]
