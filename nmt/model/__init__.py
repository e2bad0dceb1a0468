"""The model room: the contract of encoders and decoders, their families, and the model that combines them."""

from nmt.model.contract import Decoded, Decoder, Encoded, Encoder, Mixture, Sizes, Source, Words
from nmt.model.initialise import initialise
from nmt.model.recurrent.readouts import Readout
from nmt.model.seq2seq import Seq2Seq, Stepped, real_steps

__all__ = [
    "Decoded",
    "Decoder",
    "Encoded",
    "Encoder",
    "Mixture",
    "Readout",
    "Seq2Seq",
    "Sizes",
    "Source",
    "Stepped",
    "Words",
    "initialise",
    "real_steps",
]
