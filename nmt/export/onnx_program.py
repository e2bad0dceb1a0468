"""Translate lines: python translate.py INPUT OUTPUT (needs the packages onnxruntime and sentencepiece)."""

import math
from pathlib import Path

import numpy as np
import onnxruntime

from nmt.export.program_lines import ExportedFolder, run, spelled


class OnnxTranslator(ExportedFolder):
    """The graphs of a folder, and a beam search with the settings of its manifest.json."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Read a folder; `threads` is the number of threads per graph, 0 for the number of cores."""
        super().__init__(folder)
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
        pieces = self.encode(line, int)
        return "" if pieces is None else spelled([self.target.id_to_piece(token) for token in self.search(pieces)])

    def search(self, pieces: list[int]) -> list[int]:
        """Beam search: return the tokens of the hypothesis with the best rank."""
        settings, eos = self.settings, self.settings["eos"]
        longest = self.longest(len(pieces))
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
            beam = np.argsort(-scores, kind="stable")[: settings["beam_size"]]
            parents, words = np.divmod(beam, log_probs.shape[1])
            for candidate, parent in zip(beam[words == eos], parents[words == eos], strict=True):
                rank = self.rank(scores[candidate], position)
                if rank > best:
                    best, winner = rank, texts[parent]
            going = (words != eos) & np.isfinite(scores[beam])
            beam, parents, words = beam[going], parents[going], words[going]
            # Log-probabilities never rise, so no unfinished hypothesis can still win.
            if not len(words) or best >= self.rank(scores[beam[0]], longest):
                break
            tokens, totals = words, scores[beam]
            texts = [[*texts[parent], int(word)] for parent, word in zip(parents, words, strict=True)]
            state = {name: part[parents] for name, part in zip(self.state, new, strict=True)}
        return winner


if __name__ == "__main__":
    translator = OnnxTranslator(Path(__file__).resolve().parent)
    run(lambda lines: [translator.translate(line) for line in lines])
