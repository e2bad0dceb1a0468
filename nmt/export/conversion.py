"""Export of a run to a folder for another inference library: model, tokenizer, and a program that translates."""

import errno
import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from nmt import __version__
from nmt.build.open import Checkpoint, open_model, open_run
from nmt.build.paths import check_paths
from nmt.data.batch import make_batch
from nmt.export.ctranslate2_model import CTRANSLATE2
from nmt.export.format import ExportFormat
from nmt.export.onnx_model import ONNX
from nmt.model import Seq2Seq, Source
from nmt.runs.run import Run
from nmt.system.compute import CPU
from nmt.system.errors import UserError, install_command
from nmt.system.files import appearing, unwritable, write_text
from nmt.system.platform import shell_quoted
from nmt.system.terminal import print_message
from nmt.text.canonical import SHOWN, UNSEEN
from nmt.text.tokenizer import BOS, EOS, Tokenizer
from nmt.translation.translator import EXTRA_LENGTH, LENGTH_RATIO

FORMATS = {"ctranslate2": CTRANSLATE2, "onnx": ONNX}

Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"
]

#: Maximum difference of a log-probability in float32. Rounding gives about 1e-5.
TOLERANCE = 1e-2
#: Source lengths in pieces of the batches for the check: with padding and without.
_LENGTHS = ([1, 5, 20, 12, 3, 8, 17, 20], [1], [49])
#: Target length in pieces for the check, without the end of sentence.
_TARGET = 12


@dataclass(frozen=True)
class Exporting:
    """The settings of `nmt.export`; `configs/export.yaml` explains them."""

    run: Path
    format: Literal["ctranslate2", "onnx"]
    output: Path
    quantization: Quantization
    checkpoint: Checkpoint


def export(request: Exporting) -> int:
    """Write the folder, complete or not at all; return the exit status.

    Raises:
        UserError: the run is damaged or cannot be converted, the folder is not empty, or a package is missing.
    """
    run, output, format_ = Run(request.run), request.output, FORMATS[request.format]
    check_paths({}, {"output": output}, folders=["output"])
    if output.is_dir() and any(output.iterdir()):
        raise _taken(output)
    model, tokenizer = open_model(open_run(run.folder), request.checkpoint, CPU)
    _check(format_, request.quantization, run, model)
    try:
        with appearing(output) as staging:
            tokenizer.save(staging)
            format_.save(staging, model, tokenizer, request.quantization)
            _write_texts(staging, run, request, tokenizer)
            checked = "" if request.quantization != "float32" else _checked(run, format_, staging, model, tokenizer)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and output.exists():
            raise _taken(output) from error  # another process has just created it
        raise unwritable(output, error, "output=FOLDER") from error
    print_message(f"{output}: weights in {request.quantization}{checked}.")
    print_message(f"Translate with it: python {shell_quoted(str(output / 'translate.py'))} INPUT OUTPUT")
    return 0


def _check(format_: ExportFormat, quantization: str, run: Run, model: Seq2Seq) -> None:
    """Raise UserError if the format does not support the model or quantization, or if a package is missing."""
    name, choices = format_.name, run.config().choices
    if quantization not in format_.quantizations:
        kinds = " or ".join(format_.quantizations)
        raise UserError(f"quantization={quantization}: must be {kinds} with format={name}. Give quantization=int8.")
    if refused := [*format_.refusals(model, choices)]:
        settings, cures = (" and ".join(dict.fromkeys(each)) for each in zip(*refused, strict=True))
        reason = f"{run.folder} cannot be exported: format={name} does not support {settings}."
        others = [other for other in FORMATS.values() if next(other.refusals(model, choices), None) is None]
        if others:
            raise UserError(f"{reason} Give format={others[0].name}, which can hold this run.")
        raise UserError(f"{reason} Train a run with {cures}.")
    if any(importlib.util.find_spec(package) is None for package in format_.packages):
        packages = " and ".join(format_.packages)
        raise UserError(f"format={name} needs {packages}. Install with: {install_command('export')}")


def _checked(run: Run, format_: ExportFormat, folder: Path, model: Seq2Seq, tokenizer: Tokenizer) -> str:
    """A message on the largest difference of a log-probability (UserError if it exceeds TOLERANCE)."""
    difference = largest_difference(format_, folder, model, tokenizer)
    if not difference <= TOLERANCE:
        raise UserError(
            f"{run.folder} cannot be exported: log-probabilities of the export differ by up to {difference:.2g} from "
            f"those of the run. This is a fault of nmt: please report it."
        )
    return f", log-probabilities as the run's (largest difference: {difference:.1g})"


def largest_difference(format_: ExportFormat, folder: Path, model: Seq2Seq, tokenizer: Tokenizer) -> float:
    """The largest difference of a log-probability between a model and its export in `folder`.

    It is measured by forced decoding of random target pieces, with random source pieces.
    """
    generator = np.random.default_rng(1)
    forbidden = list(tokenizer.target.forbidden)
    allowed = np.setdiff1d(np.arange(tokenizer.target.size), [*forbidden, EOS])
    differences = []
    for lengths in _LENGTHS:
        sources = [generator.integers(EOS + 1, tokenizer.source.size, length).tolist() for length in lengths]
        batch = make_batch(sources, [generator.choice(allowed, _TARGET).tolist() for _ in lengths])
        with torch.no_grad():
            decoded = model(Source.of(batch), batch.target_in, weights=False)
            logits = model.target_logits(decoded, batch.target_mask)
            if format_.only_allowed:
                logits[:, forbidden] = -torch.inf
            words = batch.target_out[batch.target_mask].unsqueeze(1)
            ours = logits.log_softmax(-1).gather(1, words).squeeze(1)
        differences.append(np.abs(ours.numpy() - format_.log_probs(folder, tokenizer, batch)).max())
    return float(np.max(differences))  # NaN stays NaN


def _taken(output: Path) -> UserError:
    return UserError(f"output={output} exists and is not empty. Name a new folder, or remove it.")


def _write_texts(folder: Path, run: Run, request: Exporting, tokenizer: Tokenizer) -> None:
    """Write the manifest, the program and the README."""
    manifest = _manifest(run, request, tokenizer)
    write_text(folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    program, lines, readme = (
        Path(__file__).with_name(name).read_text(encoding="utf-8")
        for name in (f"{request.format}_program.py", "program_lines.py", f"{request.format}.md")
    )
    lines = lines.partition('"""\n\n')[2]
    program = re.sub(r"from nmt\.export\.program_lines .*\n", lambda _: lines, program, count=1)
    write_text(folder / "translate.py", program)
    step = run.best_step() if request.checkpoint == "best" else run.facts().get("step")
    described = {
        "step": "not recorded" if step is None else f"{step:,}",
        "program": shell_quoted(f"{request.output.name}/translate.py"),
        "tokenizer": ", ".join(f"`{name}`" for name in dict.fromkeys([manifest["source"], manifest["target"]])),
    }
    write_text(folder / "README.md", readme.format(**manifest, **described))


def _manifest(run: Run, request: Exporting, tokenizer: Tokenizer) -> dict[str, Any]:
    """The facts on run, search and tokenizer for manifest.json; a search without a beam becomes greedy search."""
    facts = run.facts()
    search: Mapping[str, Any] = run.config().search
    # The file names of `Tokenizer.save`.
    names = ("tokenizer.model", "tokenizer.model") if tokenizer.joint else ("source.model", "target.model")
    return {
        "format": f"nmt-{request.format}",
        "format_version": 2,
        "nmt_version": __version__,
        "run": run.folder.resolve().name,
        "languages": " to ".join(map(str, facts.get("languages", []))) or "languages not recorded",
        "quantization": request.quantization,
        "beam_size": search.get("beam_size", 1),
        "length_penalty": search.get("length_penalty", 0.0),
        "length_ratio": float(facts.get("length_ratio", LENGTH_RATIO)),
        "extra_length": EXTRA_LENGTH,
        "source": names[0],
        "target": names[1],
        "unseen": UNSEEN if tokenizer.source.canonical else None,
        "shown": SHOWN,
        "bos": BOS,
        "eos": EOS,
        "forbidden": [int(token) for token in tokenizer.target.forbidden],
        **FORMATS[request.format].settings,
    }
