"""Constraints: phrases that every hypothesis must contain, and the progress of a hypothesis through them.

The alternatives of all constraints of a sentence form a trie (Hu et al. 2019, "Improved lexically constrained decoding
for translation and monolingual rewriting"). `nmt.search.banks` searches with constraints.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

_ORDINARY = _INSIDE, _START = -1, -2  # stand for tokens outside all alternatives: inside a word, or at its start
#: Flags of a constraint in a state: met earlier, begun, completed by the last token, or completed by it again.
MET, PART, MEETS, AGAIN = 1, 2, 4, 8


class Constraint(NamedTuple):
    """A phrase that a hypothesis must contain.

    Attributes:
        alternatives: sequences of tokens, one of which must occur; at least one must be able to begin after any token.
        slots: the source slots that the phrase translates. It may begin at a step whose total weight on them is at
            least the weight of any other slot, or if nothing else can follow; without slots or weights, anywhere.
        whole: whether the tokens are whole words, which begin and end at word boundaries.
    """

    alternatives: Sequence[Sequence[int]]
    slots: Sequence[int] = ()
    whole: bool = True

    @property
    def longest(self) -> int:
        """The number of tokens of the longest alternative."""
        return max(map(len, self.alternatives))


class Edges(NamedTuple):
    """Word boundaries, by token: between two tokens if the second `starts` a word or the first `ends` a word."""

    starts: Sequence[bool]
    ends: Sequence[bool]


class State(NamedTuple):
    """The progress of a hypothesis through its constraints.

    Attributes:
        met: the met constraints, as the bits of a number.
        path: the last tokens, as far as they begin an alternative. The next token decides whether they meet it.
        edge: whether the token before the path ends a word.
    """

    met: int = 0
    path: tuple[int, ...] = ()
    edge: bool = False


class Trie:
    """The alternatives of the constraints of one sentence.

    Attributes:
        tokens: the tokens of all alternatives.
    """

    def __init__(self, constraints: Sequence[Constraint], edges: Edges | None) -> None:
        self.constraints, self._edges = constraints, edges
        #: For each beginning of an alternative, its constraints, and the smallest number of missing tokens of each.
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
        self.tokens = frozenset(token for path in self._missing for token in path)
        self._children: dict[tuple[int, ...], list[int]] = {path: [] for path in self._missing}
        for path in self._missing:
            if path:
                self._children[path[:-1]].append(path[-1])
        # By path, edge and met constraints among those that the path completes: the next tokens and their states.
        self._following: dict[State, tuple[list[int], list[State]]] = {}
        self._completed: dict[tuple[int, ...], int] = {}
        self._unmet: dict[int, tuple[bytes, int]] = {}

    def following(self, state: State) -> tuple[list[int], list[State]]:
        """The tokens that may continue a suffix of the path; the states after ordinary tokens and after these."""
        met, path, edge = state
        key = State(met & self._completes(path), path, edge)
        entry = self._following.get(key)
        if entry is None:
            ends = (path[start:] for start in range(len(path) + 1))
            tokens = list(dict.fromkeys(token for end in ends for token in self._children.get(end, ())))
            # After an ordinary token, the path is empty.
            ordinary = [State(self.after(key, token).met, (), edge) for token in _ORDINARY for edge in (False, True)]
            entry = self._following[key] = tokens, [*ordinary, *(self.after(key, token) for token in tokens)]
        return entry[0], [State(met | each[0], each[1], each[2]) for each in entry[1]]

    def _completes(self, path: tuple[int, ...]) -> int:
        """The constraints that any part of a path completes, as the bits of a number."""
        bits = self._completed.get(path)
        if bits is None:
            ends = range(len(path) + 1)
            parts = [self._missing.get(path[start:end], {}) for end in ends for start in range(end)]
            complete = {number for part in parts for number, missing in part.items() if not missing}
            bits = self._completed[path] = sum(1 << number for number in complete)
        return bits

    def after(self, state: State, token: int) -> State:
        """The state after one more token."""
        met, path, edge = state.met, (*state.path, token), state.edge
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
        return State(met, path, edge)

    def _open(self, path: tuple[int, ...], edge: bool) -> dict[int, int]:
        """The constraints that a path may belong to, with their numbers of missing tokens."""
        counts = self._missing.get(path, {})
        if edge or self._starts(path[0]):
            return counts
        return {number: missing for number, missing in counts.items() if not self.constraints[number].whole}

    def _starts(self, token: int) -> bool:
        """Whether a word starts with a token."""
        return token == _START if token < 0 else self._edges is None or self._edges.starts[token]

    def _ends(self, token: int) -> bool:
        return self._edges is None or (token >= 0 and self._edges.ends[token])

    def look(self, state: State) -> tuple[int, bytes]:
        """The number of tokens that suffice to meet all constraints, and the flags of each constraint."""
        met, path, edge = state
        if met not in self._unmet:
            bits = [met >> number & 1 for number in range(len(self._shortest))]
            need = sum(count for count, bit in zip(self._shortest, bits, strict=True) if not bit)
            self._unmet[met] = bytes(MET * bit for bit in bits), need
        kinds, need = self._unmet[met]
        begun = self._open(path, edge) if path else None
        if not begun:
            return need, kinds
        marked, saved = bytearray(kinds), 0
        unmet = [number for number in begun if not met >> number & 1]
        for number in unmet or begun:
            complete = not begun[number]
            if unmet:
                marked[number] |= PART | MEETS * complete
                saved = max(saved, self._shortest[number] - begun[number])
            elif complete:
                marked[number] |= AGAIN
        return need - saved, bytes(marked)


class States:
    """Tables with a row for each state that occurs in a batch. A state's number is its row.

    Attributes:
        starts: [B] the number of each sentence's first state.
        need: [R] the number of tokens that suffice to meet all constraints.
        kinds: [R, C] each constraint's flags, the sum of MET, PART, MEETS and AGAIN.
        first: [R] whether the last token may be the first of an alternative; is_part: whether a constraint has PART.
        tokens, following: [R, M] the tokens of alternatives that may follow, -1 for none, and the states after them.
        ordinary: [R, 4] the state after any other token, by its class: + 2 if it starts a word, + 1 if it ends a word.
    """

    def __init__(self, tries: Sequence[Trie], device: torch.device) -> None:
        self._numbers: dict[Trie, dict[State, int]] = {trie: {} for trie in tries}
        self._rows: list[tuple[Trie, State]] = []
        # The values of new states, which are not in the tables yet.
        self._needs, self._kinds, self._firsts = list[int](), bytearray(), list[bool]()
        self._count = max(len(trie.constraints) for trie in tries)
        self._device = device
        self.need = torch.zeros(0, dtype=torch.int64, device=device)
        self.first = self.is_part = self.need.bool()
        self.kinds = torch.zeros(0, self._count, dtype=torch.uint8, device=device)
        self.tokens = self.following = self.need.new_zeros(0, 0)
        self.ordinary = self.need.new_zeros(0, 4)
        self.starts = torch.tensor([self._number(trie, State()) for trie in tries], device=device)
        self.expand(self.starts)

    def _number(self, trie: Trie, state: State) -> int:
        numbers = self._numbers[trie]
        number = numbers.get(state)
        if number is None:
            number = numbers[state] = len(self._rows)
            need, kinds = trie.look(state)
            self._rows.append((trie, state))
            self._needs.append(need)
            self._kinds += kinds.ljust(self._count, b"\0")
            self._firsts.append(len(state.path) == 1)
        return number

    def expand(self, numbers: Tensor) -> None:
        """Add the states that may follow the states `numbers`, unless they are already in the tables."""
        rows = sorted({*numbers[self.ordinary[numbers, 0] < 0].tolist()} if len(self.ordinary) else {*numbers.tolist()})
        if not rows:
            return
        tokens, following = list[Sequence[int]](), list[list[int]]()
        for trie, state in map(self._rows.__getitem__, rows):
            next_tokens, after = trie.following(state)
            tokens.append(next_tokens)
            following.append([self._number(trie, each) for each in after])
        new, missing = len(self._needs), max(map(len, tokens)) - self.tokens.shape[1]
        kinds = self.kinds.new_tensor(list(self._kinds)).view(new, self._count)
        self.need = torch.cat([self.need, self.need.new_tensor(self._needs)])
        self.first = torch.cat([self.first, self.first.new_tensor(self._firsts)])
        self.kinds = torch.cat([self.kinds, kinds])
        self.is_part = torch.cat([self.is_part, ((kinds & PART) > 0).any(1)])
        self._needs, self._kinds, self._firsts = [], bytearray(), []
        size = (0, max(0, missing), 0, new)
        self.ordinary = pad(self.ordinary, (0, 0, 0, new), value=-1)
        self.tokens, self.following = pad(self.tokens, size, value=-1), pad(self.following, size)
        width, at = self.tokens.shape[1], torch.tensor(rows, device=self._device)
        self.tokens[at] = self.need.new_tensor([[*each, *[-1] * (width - len(each))] for each in tokens])
        self.following[at] = self.need.new_tensor([[*each[4:], *[0] * (width + 4 - len(each))] for each in following])
        self.ordinary[at] = self.need.new_tensor([each[:4] for each in following])
