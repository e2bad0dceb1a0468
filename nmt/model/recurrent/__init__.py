"""The recurrent family: encoders of GRUs and LSTMs, and decoders of GRUs in four wirings."""
