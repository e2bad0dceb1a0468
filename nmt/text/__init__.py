"""Text room: strings <-> token ids. Stands on nothing but SentencePiece; `data` and everything above stand on it."""
