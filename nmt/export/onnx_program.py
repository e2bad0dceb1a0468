"""Translate lines: python translate.py INPUT OUTPUT (needs the packages onnxruntime and sentencepiece)."""

import json
import math
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import sentencepiece

from nmt.export.program_lines import protected, run, spelled


class OnnxTranslator:
    """The graphs and the tokenizer of a folder, and a beam search with the settings of its manifest.json."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Read a folder; `threads` of each graph, 0 for as many as there are cores."""
        self.settings: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / self.settings[side]))
            for side in ("source", "target")
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        self.encoder, self.step = (
            onnxruntime.InferenceSession(folder / name, options) for name in ("encoder.onnx", "step.onnx")
        )
        self.names = [output.name for output in self.encoder.get_outputs()]
        self.state = [name for name in self.names if name in ("hidden", "feed")]

    def translate(self, line: str) -> str:
        """The translation of a line."""
        unseen = self.settings["unseen"]
        if not re.search(self.settings["shown"], line):
            return ""
        # Equivalent text is equal text.
        plain = unicodedata.normalize("NFC", re.sub(unseen, "", line)) if unseen else line
        return spelled([self.target.id_to_piece(token) for token in self.search(self.source.encode(protected(plain)))])

    def search(self, pieces: list[int]) -> list[int]:
        """The best hypothesis by log-probability / ((5 + pieces) / 6) ** length penalty, where the end is a piece."""
        settings, eos = self.settings, self.settings["eos"]
        size, penalty = settings["beam_size"], settings["length_penalty"]
        longest = math.ceil(settings["length_ratio"] * len(pieces)) + settings["extra_length"]  # with the end
        source = np.array([[*pieces, eos]], dtype=np.int64)
        given = {"source": source, "lengths": np.array([source.shape[1]], dtype=np.int64)}
        memory = dict(zip(self.names, self.encoder.run(None, given), strict=True))
        state = {name: memory.pop(name) for name in self.state}
        tokens, totals = np.array([settings["bos"]], dtype=np.int64), np.zeros(1)
        texts: list[list[int]] = [[]]
        best, winner = -math.inf, list[int]()
        for position in range(1, longest + 1):
            rows = {name: np.repeat(part, len(tokens), axis=0) for name, part in memory.items()}
            log_probs, _, *new = self.step.run(None, {"token": tokens, **rows, **state})
            log_probs[:, settings["forbidden"]] = -math.inf
            if position == longest:
                log_probs[:, np.arange(log_probs.shape[1]) != eos] = -math.inf
            scores = (totals[:, None] + log_probs).ravel()
            chosen = np.argsort(-scores, kind="stable")[:size]
            parents, words = np.divmod(chosen, log_probs.shape[1])
            for choice, parent in zip(chosen[words == eos], parents[words == eos], strict=True):
                rank = float(scores[choice]) / ((5 + position) / 6) ** penalty
                if rank > best:
                    best, winner = rank, texts[parent]
            going = (words != eos) & np.isfinite(scores[chosen])
            chosen, parents, words = chosen[going], parents[going], words[going]
            # A log-probability only falls, so nothing that is open can win any more.
            if not len(words) or best >= scores[chosen[0]] / ((5 + longest) / 6) ** penalty:
                break
            tokens, totals = words, scores[chosen]
            texts = [[*texts[parent], int(word)] for parent, word in zip(parents, words, strict=True)]
            state = {name: part[parents] for name, part in zip(self.state, new, strict=True)}
        return winner


if __name__ == "__main__":
    translator = OnnxTranslator(Path(__file__).resolve().parent)
    run(lambda lines: [translator.translate(line) for line in lines])
