"""From a run to a folder that another program translates with: model, tokenizer, and a program that runs them."""

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nmt import __version__
from nmt.compute import CPU
from nmt.errors import UserError
from nmt.export.ctranslate2_model import (
    POSITIONS,
    check_convertible,
    check_installed,
    largest_difference,
    to_ctranslate2,
)
from nmt.export.onnx_folder import QUANTIZATIONS, lines, write_onnx
from nmt.export.onnx_model import check_exportable, check_onnx_installed, largest_onnx_difference
from nmt.files import appearing, unwritable, write_text
from nmt.model import Seq2Seq
from nmt.pipeline.opening import Checkpoint, open_model
from nmt.pipeline.paths import check_paths
from nmt.runs import Run
from nmt.system import shell_quoted
from nmt.terminal import print_message
from nmt.text.canonical import SHOWN, UNSEEN
from nmt.text.tokenizer import Tokenizer
from nmt.translation.translator import EXTRA_LENGTH, LENGTH_RATIO

Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"
]

#: Writes a folder; returns the largest difference of a log-probability, if it was measured.
Write = Callable[[Path], float | None]

#: Raises UserError if a format cannot hold a model with these choices, of the run in this folder.
Check = Callable[[Seq2Seq, Mapping[str, str], Path], None]

#: The most by which a log-probability of a float32 model may differ. Rounding gives about 1e-5.
TOLERANCE = 1e-2

#: The program in the folder. Its ranking is that of `nmt.search.beam`; CTranslate2's own divides by |Y| ** penalty.
PROGRAM = '''\
"""Translate lines: python translate.py INPUT OUTPUT (needs the packages ctranslate2 and sentencepiece)."""

import math
import pathlib
import unicodedata

import ctranslate2
import sentencepiece

{lines}

BEAM_SIZE, LENGTH_PENALTY = {beam_size}, {length_penalty}
LENGTH_RATIO, EXTRA_LENGTH = {length_ratio}, {extra_length}  # at most ratio * pieces + extra pieces, with the end
UNSEEN, SHOWN = {unseen!r}, {shown!r}  # characters that are not read, and those that a line with text has

folder = pathlib.Path(__file__).resolve().parent
model = ctranslate2.Translator(str(folder))
source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "{source}"))


def search(rows, longest):
    settings = dict(beam_size=BEAM_SIZE, num_hypotheses=BEAM_SIZE, length_penalty=0, return_scores=True)
    return model.translate_batch(rows, max_batch_size=64, max_decoding_length=longest, **settings)


def plain(line):
    """Equivalent text as equal text."""
    return unicodedata.normalize("NFC", re.sub(UNSEEN, "", line)) if UNSEEN else line


def translate(lines):
    pieces = source.encode([protected(plain(line)) for line in lines], out_type=str)
    limits = [min(math.ceil(LENGTH_RATIO * len(row)) + EXTRA_LENGTH - 1, {positions}) for row in pieces]
    results = search(pieces, max(limits))
    for at, limit in enumerate(limits):  # of each line; translate_batch has one for all
        if any(len(hypothesis) > limit for hypothesis in results[at].hypotheses):
            results[at : at + 1] = search(pieces[at : at + 1], limit)
    texts = []
    for line, result in zip(lines, results):
        lengths = [len(hypothesis) + 1 for hypothesis in result.hypotheses]
        ranks = [score / ((5 + n) / 6) ** LENGTH_PENALTY for score, n in zip(result.scores, lengths)]
        texts.append(spelled(result.hypotheses[ranks.index(max(ranks))]) if re.search(SHOWN, line) else "")
    return texts


if __name__ == "__main__":
    run(translate)
'''

README = """\
# {name}: a translator, {languages}

Exported from the run `{name}` (step {step}) by nmt {version} for [CTranslate2](https://opennmt.net/CTranslate2/),
weights in {quantization}.

    pip install ctranslate2 sentencepiece
    python {folder}/translate.py INPUT OUTPUT    # one sentence per line; or < INPUT > OUTPUT

| file | content |
|---|---|
| `model.bin`, `config.json`, `*_vocabulary.json` | the model, for `ctranslate2.Translator` |
| {tokenizer} | the tokenizer, for `sentencepiece.SentencePieceProcessor` |
| `translate.py` | a program that translates lines |

- The model takes the pieces of SentencePiece as they are, of text as `plain` in `translate.py` makes it. CTranslate2
  adds the end of sentence.
- `translate.py` ranks translations as nmt does: log-probability / ((5 + pieces) / 6) ** length penalty, where the end
  of sentence is a piece. `length_penalty=` of CTranslate2 divides by pieces ** length penalty instead. With
  `length_penalty=0` the two are equal. A coverage penalty is left out.
- Greedy search gives nmt's translations, up to rounding. Beam search differs in about one sentence in a hundred: when a
  translation ends, CTranslate2 opens another in its place, and nmt does not.
- nmt splits lines of more than 250 pieces. CTranslate2 cuts them at 1,024 (`max_input_length=`).
"""


@dataclass(frozen=True)
class Exporting:
    """What `nmt.export` is asked to do; `configs/export.yaml` explains the settings."""

    run: Path
    format: Literal["ctranslate2", "onnx"]
    output: Path
    quantization: Quantization
    checkpoint: Checkpoint


def export(request: Exporting) -> int:
    """Write the folder, whole or not at all.

    Raises:
        UserError: the run is damaged or cannot be converted, the folder exists, or a package is missing.
    """
    run, output = Run(request.run), request.output
    check_paths({}, {"output": output}, folders=["output"])
    if output.is_dir() and any(output.iterdir()):
        raise _taken(output)
    model, tokenizer = open_model(run, request.checkpoint, CPU)
    convert = _onnx if request.format == "onnx" else _ctranslate2
    write = convert(run, request, model, tokenizer)
    try:
        with appearing(output) as staging:
            tokenizer.save(staging)
            difference = write(staging)
            checked = "" if difference is None else _checked(run, difference)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and output.exists():
            raise _taken(output) from error  # created meanwhile
        raise unwritable(output, error, "output=FOLDER") from error
    print_message(f"{output}: weights in {request.quantization}{checked}.")
    print_message(f"Translate with it: python {shell_quoted(str(output / 'translate.py'))} INPUT OUTPUT")
    return 0


def _ctranslate2(run: Run, request: Exporting, model: Seq2Seq, tokenizer: Tokenizer) -> Write:
    """What writes the folder of CTranslate2 (UserError if the run cannot be converted)."""
    _check(model, run, check_convertible, check_exportable, "format=onnx")
    check_installed()
    converted = to_ctranslate2(model, tokenizer, request.quantization)

    def write(staging: Path) -> float | None:
        converted.save(str(staging))
        write_text(staging / "translate.py", _program(run, tokenizer))
        write_text(staging / "README.md", README.format(**_facts(run, request, tokenizer)))
        # Other weights are rounded.
        return largest_difference(staging, model, tokenizer) if request.quantization == "float32" else None

    return write


def _onnx(run: Run, request: Exporting, model: Seq2Seq, tokenizer: Tokenizer) -> Write:
    """What writes the folder of ONNX graphs (UserError if the run cannot be converted)."""
    if request.quantization not in QUANTIZATIONS:
        raise UserError(
            f"quantization={request.quantization}: must be float32 or int8 with format=onnx. Give quantization=int8."
        )
    _check(model, run, check_exportable, check_convertible, "format=ctranslate2")
    check_onnx_installed()

    def write(staging: Path) -> float | None:
        write_onnx(staging, model, tokenizer, _search(run, tokenizer), _facts(run, request, tokenizer))
        return largest_onnx_difference(staging, model, tokenizer) if request.quantization == "float32" else None

    return write


def _check(model: Seq2Seq, run: Run, check: Check, other: Check, other_format: str) -> None:
    """UserError if a format cannot hold a model; it names the other format if that one can."""
    choices = run.config().choices
    try:
        check(model, choices, run.folder)
    except UserError as error:
        try:
            other(model, choices, run.folder)
        except UserError:
            raise error from None
        reason = str(error).partition(" Train a run")[0]
        raise UserError(f"{reason} Give {other_format}, which can hold this run.") from error


def _checked(run: Run, difference: float) -> str:
    """What to say of the largest difference of a log-probability (UserError if rounding does not explain it)."""
    if not difference <= TOLERANCE:
        raise UserError(
            f"{run.folder} cannot be exported: log-probabilities of the export differ by up to {difference:.2g} from "
            f"those of the run. This is a fault of nmt: please report it."
        )
    return f", log-probabilities as the run's (largest difference: {difference:.1g})"


def _taken(output: Path) -> UserError:
    return UserError(f"output={output} exists and is not empty. Name a new folder, or remove it.")


def _files(tokenizer: Tokenizer) -> tuple[str, str]:
    """The names of the tokenizer's files for source and target, as `Tokenizer.save` writes them."""
    return ("tokenizer.model", "tokenizer.model") if tokenizer.joint else ("source.model", "target.model")


def _search(run: Run, tokenizer: Tokenizer) -> dict[str, Any]:
    """The run's search and tokenizer for a program; a search other than a beam becomes greedy."""
    search: Mapping[str, Any] = run.config().search
    source, target = _files(tokenizer)
    return {
        "beam_size": search.get("beam_size", 1),
        "length_penalty": search.get("length_penalty", 0.0),
        "length_ratio": float(run.facts().get("length_ratio", LENGTH_RATIO)),
        "extra_length": EXTRA_LENGTH,
        "source": source,
        "target": target,
        "unseen": UNSEEN if tokenizer.source.canonical else None,
        "shown": SHOWN,
    }


def _program(run: Run, tokenizer: Tokenizer) -> str:
    """The program for CTranslate2 with the run's search."""
    return PROGRAM.format(**_search(run, tokenizer), positions=POSITIONS - 1, lines=lines())


def _facts(run: Run, request: Exporting, tokenizer: Tokenizer) -> dict[str, Any]:
    """What a README says of the run."""
    facts = run.facts()
    step = run.best_step() if request.checkpoint == "best" else facts.get("step")
    return {
        "name": run.folder.resolve().name,
        "languages": " to ".join(map(str, facts.get("languages", []))) or "languages not recorded",
        "step": "not recorded" if step is None else f"{step:,}",
        "version": __version__,
        "quantization": request.quantization,
        "folder": request.output.name,
        "tokenizer": ", ".join(f"`{name}`" for name in dict.fromkeys(_files(tokenizer))),
    }
