"""The case of the part "exported": translates with nmt, or with its export for CTranslate2 or ONNX Runtime."""

import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarking.settings import Exchange, Json

BEAM, BATCH = 5, 64


def translate_exported(settings: Json, exchange: Exchange) -> None:
    """Translate a run's first test set; orders: {"translate": true} to be measured, {"texts": true} for the last."""
    from nmt.build.open import open_run, own_data, own_split
    from nmt.evaluation.metrics import bleu

    run = open_run(Path(settings["run"]))
    source = own_data(run, "run", "")
    split = own_split(run, source, source.tests()[0])
    lines = split.source[: settings["sentences"]]
    exported = _ctranslate2 if settings["format"] == "ctranslate2" else _onnx
    translate = (_nmt if settings["program"] in ("nmt", "alone") else exported)(settings)
    translate(lines[:4])  # warms up
    texts: list[str] = []
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        if "texts" in order:
            references = split.target[: len(texts)]
            answer = {"texts": texts, "bleu": float(bleu(texts, references, source.languages[1]).value)}
            continue
        began = time.perf_counter()
        texts = translate(lines)
        answer = {"seconds": time.perf_counter() - began, "sentences": len(lines)}


def _nmt(settings: Json) -> Callable[[Sequence[str]], list[str]]:
    """What `nmt.translate` does for plain text."""
    from nmt.build.open import TranslatorRequest
    from nmt.build.requests import read
    from nmt.command.composing import compose
    from nmt.command.quoting import quote

    words = quote(
        [
            *(f"run={settings['run']}", "device=cpu", "precision=float32", f"threads={settings['threads']}"),
            *("search=beam", f"search.beam_size={BEAM}"),
            f"batch_sentences={1 if settings['program'] == 'alone' else BATCH}",
        ]
    )
    translator = read(TranslatorRequest, compose("translate", words), words).open(keep_weights=False)
    return lambda lines: [best[0].text for best in translator.translate(lines)]


def _onnx(settings: Json) -> Callable[[Sequence[str]], list[str]]:
    """What the exported program does."""
    from nmt.export.conversion import Exporting, export

    folder: Path = settings["folder"]
    export(Exporting(settings["run"], "onnx", folder, settings["program"], "best"))
    specification = importlib.util.spec_from_file_location("exported_program", folder / "translate.py")
    assert specification is not None
    assert specification.loader is not None
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    translator = program.OnnxTranslator(folder, settings["threads"])
    return lambda lines: [translator.translate(line) for line in lines]


def _ctranslate2(settings: Json) -> Callable[[Sequence[str]], list[str]]:
    """What the exported program does, with one limit of the length for all lines."""
    import ctranslate2
    import sentencepiece

    from nmt.export.conversion import Exporting, export

    folder: Path = settings["folder"]
    export(Exporting(settings["run"], "ctranslate2", folder, settings["program"], "best"))
    translator = ctranslate2.Translator(str(folder), intra_threads=settings["threads"])
    joint = (folder / "tokenizer.model").is_file()
    names = ("tokenizer.model", "tokenizer.model") if joint else ("source.model", "target.model")
    source, target = (sentencepiece.SentencePieceProcessor(model_file=str(folder / name)) for name in names)

    def translate(lines: Sequence[str]) -> list[str]:
        pieces = source.encode(list(lines), out_type=str)
        results = translator.translate_batch(
            pieces,
            max_batch_size=BATCH,
            beam_size=BEAM,
            num_hypotheses=BEAM,
            length_penalty=0,
            return_scores=True,
            max_decoding_length=2 * max(map(len, pieces)) + 10,
        )
        best = []
        for result in results:
            ranks = [
                score / ((6 + len(pieces)) / 6) for score, pieces in zip(result.scores, result.hypotheses, strict=True)
            ]
            best.append(result.hypotheses[ranks.index(max(ranks))])
        texts: list[str] = target.decode(best)
        return texts

    return translate
