"""A record of a search as a tree of hypotheses, made without any change to the search.

A `BeamRecord` wraps the step function and the state of a search, so it sees every step and every selection.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from nmt.search import SearchState, Step
from nmt.text.tokenizer import EOS
from nmt.translation.stepper import EnsembleState

NodeState = Literal["open", "ended", "dropped"]


class Node(NamedTuple):
    """A token of a hypothesis, after the node `parent`.

    Attributes:
        parent: the index of the previous node; None for the beginning of the sentence.
        step: the step from 0; -1 for the beginning of the sentence.
        token: the token id; None for the beginning of the sentence.
        log_prob: the natural log-probability of the token at its step.
        total: the sum of log-probabilities from the beginning.
        state: "open" if the search continued the hypothesis, "ended" for the end of sentence, "dropped" if not.
    """

    parent: int | None
    step: int
    token: int | None
    log_prob: float
    total: float
    state: NodeState


class _Watched(NamedTuple):
    """The state of a search, with the index of each hypothesis's node; -1 for a hypothesis of probability zero."""

    inner: SearchState
    nodes: list[int]

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "_Watched":
        return _Watched(self.inner.select(rows, sentences), [self.nodes[row] for row in rows.tolist()])


class BeamRecord:
    """The tree of a beam or greedy search for one sentence; in `nodes`, parents come before children."""

    def __init__(
        self, size: int, hook: Callable[[list[int]], None] | None, score: Callable[[float, int], float] | None
    ) -> None:
        """Begin a record.

        Args:
            size: the number of hypotheses in the beam, 1 for greedy search.
            hook: called before each step with the tokens of `certain`.
            score: the search's ranking score of a finished hypothesis, as a function of log-probability and number of
                tokens with the end of sentence; None if the score depends on more.
        """
        self.size = size
        self._hook, self._score = hook, score
        self.nodes = [Node(None, -1, None, 0.0, 0.0, "open")]
        self._step: Step | None = None
        self._ids: Sequence[int] | None = None  # vocabulary ids of a shortlist's tokens
        self._children: dict[tuple[int, int], int] = {}
        # The last step's log-probabilities and the node of each row: `_pending` until search has changed them in place.
        self._pending: tuple[Tensor, list[int]] | None = None
        self._closed: tuple[Tensor, list[int]]
        self._count = 0

    def watch(self, step: Step, state: SearchState) -> tuple[Step, SearchState]:
        """Wrap the step function and the first state of a search, so that the search is recorded."""
        self._step = step
        if isinstance(state, EnsembleState) and state.ids is not None:
            self._ids = state.ids.tolist()
        return self._stepped, _Watched(state, [0])

    def finish(self) -> list[Node]:
        """Record the last step, and return all nodes."""
        self._close()
        return self.nodes

    def certain(self, nodes: Sequence[int]) -> list[int]:
        """The common first tokens of all hypotheses that may become the best hypothesis.

        With a score, these are the open hypotheses, and the best finished one unless an open one has a higher score so
        far. The result is wrong only if the open hypotheses later fall behind a finished one. Without a score, these
        are the open and all finished hypotheses, and the result is always right.

        Args:
            nodes: indices of the nodes of open hypotheses.
        """
        rivals = [at for at, node in enumerate(self.nodes) if node.state == "ended"]
        if self._score is not None:
            scores = {at: self._score(self.nodes[at].total, self.nodes[at].step + 1) for at in (*nodes, *rivals)}
            best = max(rivals, key=lambda at: scores[at], default=None)
            lead = max((scores[at] for at in nodes), default=float("-inf"))
            rivals = [] if best is None or scores[best] < lead else [best]
        paths = [self.path(node) for node in (*nodes, *rivals)]
        together = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*paths))
        return [tokens[0] for tokens in together]

    def _stepped(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        assert isinstance(state, _Watched)
        assert self._step is not None
        self._close()
        nodes = state.nodes
        if self._count:
            # Finished hypotheses keep their row, with probability zero.
            nodes = [self._child(parent, token) for parent, token in zip(nodes, tokens.tolist(), strict=True)]
            if self._hook is not None:
                self._hook(self.certain([node for node in nodes if node >= 0]))
        self._count += 1
        log_probs, weights, following = self._step(tokens, state.inner)
        self._pending = log_probs, nodes
        return log_probs, weights, _Watched(following, nodes)

    def _child(self, parent: int, token: int) -> int:
        """The node of a continued hypothesis, marked as open; -1 for a finished one or one of probability zero."""
        if parent < 0 or token == EOS:
            return -1
        if (parent, token) not in self._children:  # search kept another candidate of a tie
            log_probs, rows = self._closed
            log_prob = float(log_probs[rows.index(parent), token])
            if log_prob == float("-inf"):
                return -1
            self._add(parent, token, log_prob)
        node = self._children[parent, token]
        self.nodes[node] = self.nodes[node]._replace(state="open")
        return node

    def _add(self, parent: int, token: int, log_prob: float) -> None:
        self._children[parent, token] = len(self.nodes)
        token = token if self._ids is None else self._ids[token]
        state: NodeState = "ended" if token == EOS else "dropped"
        self.nodes.append(Node(parent, self._count - 1, token, log_prob, self.nodes[parent].total + log_prob, state))

    def _close(self) -> None:
        """Add the best candidates of the last step, after search has set impossible tokens to -inf in place."""
        if self._pending is None:
            return
        self._closed, self._pending = self._pending, None
        log_probs, nodes = self._closed
        before = [self.nodes[node].total if node >= 0 else float("-inf") for node in nodes]
        totals = torch.tensor(before, device=log_probs.device).unsqueeze(1) + log_probs.float()
        values, flat = totals.flatten().topk(min(self.size, totals.numel()))
        for value, place in zip(values.tolist(), flat.tolist(), strict=True):
            row, token = divmod(place, totals.shape[1])
            if value == float("-inf"):
                break
            self._add(nodes[row], token, float(log_probs[row, token]))

    def path(self, node: int) -> list[int]:
        """The tokens from the beginning of the sentence to a node."""
        tokens: list[int] = []
        at: int | None = node
        while at is not None:
            token = self.nodes[at].token
            if token is not None:
                tokens.append(token)
            at = self.nodes[at].parent
        return tokens[::-1]
