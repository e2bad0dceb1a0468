"""The files of an export for onnxruntime: graphs, tokenizer, manifest, a program that runs them, a README."""

import json
import re
from pathlib import Path
from typing import Any

from nmt.export.onnx_model import save_onnx
from nmt.files import write_text
from nmt.model import Seq2Seq
from nmt.text.tokenizer import BOS, EOS, Tokenizer

#: The quantizations of format=onnx.
QUANTIZATIONS = ("float32", "int8")

README = """\
# {name}: a translator, {languages}

Exported from the run `{name}` (step {step}) by nmt {version} for [ONNX Runtime](https://onnxruntime.ai/), weights in
{quantization}.

    pip install onnxruntime sentencepiece
    python {folder}/translate.py INPUT OUTPUT    # one sentence per line; or < INPUT > OUTPUT

| file | content |
|---|---|
| `encoder.onnx` | source ids [B, S] and lengths [B], with the end of sentence -> keys, values, mask, first state |
| `step.onnx` | previous word [N], state, keys, values, mask -> log-probabilities, attention weights, new state |
| `manifest.json` | ids of special pieces, length limit, search settings, the tokenizer's files, `unseen`, `shown` |
| {tokenizer} | the tokenizer, for `sentencepiece.SentencePieceProcessor` |
| `translate.py` | a program that translates lines by beam search |

- The rows of `step.onnx` are hypotheses: repeat the keys, values and mask of a sentence for each of them.
- `new_hidden` and `new_feed` of a step are `hidden` and `feed` of the next.
- Text is read in Unicode's form C, without the characters that the regular expression `unseen` matches; with null as it
  stands. A line without characters that `shown` matches is empty.
- `translate.py` ranks translations as nmt does, without a coverage penalty. It does not split long lines.
"""


def lines() -> str:
    """The part of an exported program that reads and writes lines."""
    return Path(__file__).with_name("program_lines.py").read_text(encoding="utf-8").partition('"""\n\n')[2]


def write_onnx(
    folder: Path, model: Seq2Seq, tokenizer: Tokenizer, settings: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Write the files; `settings` are those of the search, `facts` what the README says of the run."""
    save_onnx(folder, model, facts["quantization"])
    manifest = {
        "format": "nmt-onnx",
        "format_version": 1,
        "nmt_version": facts["version"],
        "run": facts["name"],
        "languages": facts["languages"],
        "quantization": facts["quantization"],
        **settings,
        "bos": BOS,
        "eos": EOS,
        "forbidden": [int(token) for token in tokenizer.target.forbidden],
    }
    write_text(folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    program = Path(__file__).with_name("onnx_program.py").read_text(encoding="utf-8")
    write_text(folder / "translate.py", re.sub(r"from nmt\.export\.program_lines .*\n", lambda _: lines(), program))
    write_text(folder / "README.md", README.format(**facts))
