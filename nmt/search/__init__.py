"""The search room: greedy, beam and sampling against a step function. It imports torch, and no model."""

from nmt.search.beam import BeamSearch
from nmt.search.constraints import Constraint, Edges
from nmt.search.core import Hypothesis, Limits, Search, SearchState, Step
from nmt.search.greedy import GreedySearch, SamplingSearch
from nmt.search.prefixes import Prefix

__all__ = [
    "BeamSearch",
    "Constraint",
    "Edges",
    "GreedySearch",
    "Hypothesis",
    "Limits",
    "Prefix",
    "SamplingSearch",
    "Search",
    "SearchState",
    "Step",
]
