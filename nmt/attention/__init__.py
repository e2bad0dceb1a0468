"""The attention room: query + memory -> context + weights. It knows nothing of recurrent networks, text or search.

A mechanism is four choices made independently: a score, a window, a normaliser and a read. `Attention` composes them.
"""

from nmt.attention.attention import Attended, Attention, AttentionState, Memory, Stages
from nmt.attention.forms import AdditiveForm, Form, Product
from nmt.attention.normalisers import Normaliser
from nmt.attention.pins import PinnedSteps
from nmt.attention.reads import LOG_PROB, Choices, Hard, Read, Reading
from nmt.attention.scores import Score
from nmt.attention.windows import Pins, Slots, View, Window, pins_of

__all__ = [
    "LOG_PROB",
    "AdditiveForm",
    "Attended",
    "Attention",
    "AttentionState",
    "Choices",
    "Form",
    "Hard",
    "Memory",
    "Normaliser",
    "PinnedSteps",
    "Pins",
    "Product",
    "Read",
    "Reading",
    "Score",
    "Slots",
    "Stages",
    "View",
    "Window",
    "pins_of",
]
