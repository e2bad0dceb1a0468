"""The attention room: query + memory -> context + weights, independent of recurrent networks, text and search.

A mechanism combines four independent choices: a score, a window, a normaliser and a read. `Attention` composes them.
"""

from nmt.attention.assembly import AttentionSettings
from nmt.attention.attention import Attended, Attention, AttentionState, Memory, Projections, Stages
from nmt.attention.normalisers import Normaliser
from nmt.attention.observers import Observed, observing
from nmt.attention.pins import PinnedSteps
from nmt.attention.reads import LOG_PROB, Choices, Hard, Read, Reading
from nmt.attention.score_forms import AdditiveForm, Form, Product, Terms
from nmt.attention.scores import Score
from nmt.attention.windows import Pin, Pins, Slots, View, Window, pins_of

__all__ = [
    "LOG_PROB",
    "AdditiveForm",
    "Attended",
    "Attention",
    "AttentionSettings",
    "AttentionState",
    "Choices",
    "Form",
    "Hard",
    "Memory",
    "Normaliser",
    "Observed",
    "Pin",
    "PinnedSteps",
    "Pins",
    "Product",
    "Projections",
    "Read",
    "Reading",
    "Score",
    "Slots",
    "Stages",
    "Terms",
    "View",
    "Window",
    "observing",
    "pins_of",
]
