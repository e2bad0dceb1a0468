"""The model room: encoders, decoders (the wirings), readouts, and the model that holds them."""

from nmt.model.decoders import Decoded, Decoder, DecoderState, Mixture
from nmt.model.encoders import Encoded, RecurrentEncoder
from nmt.model.initialise import initialise
from nmt.model.readouts import Readout
from nmt.model.seq2seq import Seq2Seq, Stepped

__all__ = [
    "Decoded",
    "Decoder",
    "DecoderState",
    "Encoded",
    "Mixture",
    "Readout",
    "RecurrentEncoder",
    "Seq2Seq",
    "Stepped",
    "initialise",
]
