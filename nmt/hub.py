"""Translators on the Hugging Face Hub: saves and loads a folder with a translator's files and a model card.

    from nmt.hub import HubTranslator

    translator = HubTranslator("checkpoints/NAME")
    translator.save_pretrained("NAME", model_card_kwargs={"license": "mit"})  # or .push_to_hub("OWNER/NAME", ...)
    HubTranslator.from_pretrained("NAME").translate(["Ein Hund ."])   # a folder, or OWNER/NAME of the Hub

The commands can also use the folder as a run. An existing card in the run or in the folder is kept. Only `push_to_hub`,
and `from_pretrained` with a name on the Hub, use the network.
"""

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from huggingface_hub import EvalResult, ModelCard, ModelCardData, ModelHubMixin, snapshot_download

from nmt import __version__
from nmt.api import RunTranslator, load
from nmt.data.languages import UNNAMED
from nmt.runs.records import portable
from nmt.runs.run import PRIVATE, Run
from nmt.system.errors import UserError
from nmt.system.files import write_bytes, write_json
from nmt.system.integrity import add
from nmt.system.terminal import markdown

#: Files of a run that are copied unchanged. In JSON and YAML files, absolute paths are cut to their last part.
WEIGHTS = ("best.safetensors", "lexicon.safetensors", "words.safetensors")
TOKENIZERS = ("tokenizer.model", "source.model", "target.model")
_OTHERS = ("config.yaml", "run.json", "history.jsonl", "overrides.json", "doubt.json")
CARD_NAME = "README.md"
#: The Hub's identifier for an unspecified licence.
UNKNOWN = "unknown"
METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
#: The files that are downloaded from the Hub. Other files of a repository are ignored.
ALLOWED = (*WEIGHTS, *(f"tokenizer/{name}" for name in TOKENIZERS), *_OTHERS, CARD_NAME, "checksums.json")


class HubTranslator(RunTranslator, ModelHubMixin, library_name="nmt", pipeline_tag="translation"):
    """The translator of a run that can be saved for the Hub and loaded from it."""

    def __init__(self, run: str | Path, *settings: str) -> None:
        """Open a run.

        Args:
            run: the run folder.
            settings: see `nmt.load`.

        Raises:
            UserError: see `nmt.load`.
        """
        opened = load(run, *settings)
        of_texts = opened._translator, opened._head, opened._languages
        super().__init__(*of_texts, opened._doubts, opened._linker, opened._keeps_words)
        self._run, self._is_last = Run(Path(run)), "checkpoint=last" in settings

    @classmethod
    def from_pretrained(cls, name: str | Path, *settings: str, **arguments: Any) -> Self:  # type: ignore[override]
        """Load the translator of a folder that `save_pretrained` wrote, or of a repository on the Hub.

        Args:
            name: the folder, or OWNER/NAME on the Hub.
            settings: see `nmt.load`.
            arguments: `revision`, `token`, `cache_dir`, `force_download`, `local_files_only`; see
                `huggingface_hub.snapshot_download`.

        Raises:
            UserError: the folder or the repository is missing, cannot be reached, or is damaged.
        """
        if Path(name).is_dir():
            return cls(name, *settings)
        try:
            snapshot = Path(snapshot_download(str(name), allow_patterns=list(ALLOWED), **arguments))
        except Exception as error:  # the library raises many unrelated types
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(
                f"There is no folder {name}, and the Hub does not give a repository of that name: {reason}"
            ) from error
        # The Hub's cache consists of links, which a run must not have, so the files are copied.
        folder = Path(tempfile.mkdtemp(prefix="nmt-hub-"))
        try:
            for path in (path for name in ALLOWED if (path := snapshot / name).is_file()):
                copy = folder / path.relative_to(snapshot)
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, copy)
            translator = cls(folder, *settings)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(translator, shutil.rmtree, folder, ignore_errors=True)
        return translator

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write the weights, tokenizer, settings and facts for translating, without text and training state.

        Other files of an earlier run in the folder are deleted, except its card.

        Raises:
            UserError: the folder is a run that can be resumed, or the translator does not use the run's best weights.
        """
        folder = self._run.folder
        if save_directory.resolve() == folder.resolve():
            raise UserError(f"{save_directory} is the run itself. Give another folder.")
        if any((save_directory / name).exists() for name in PRIVATE):
            raise UserError(f"{save_directory} is a run that can be resumed. Give another folder.")
        if self._is_last or not self._run.best.is_file():
            raise UserError(f"{folder}: the best weights are saved. Load a run that has them, without checkpoint=.")
        contents = _contents(self._run)
        for name in {*ALLOWED} - {CARD_NAME, *contents}:
            (save_directory / name).unlink(missing_ok=True)
        for name, data in contents.items():
            (save_directory / name).parent.mkdir(exist_ok=True)
            write_bytes(save_directory / name, data)
        add(save_directory, [name for name in contents if name not in _OTHERS])
        write_json(save_directory / "config.json", {"library_name": "nmt"})  # the Hub counts downloads by this file

    def generate_model_card(self, *_: Any, license: str | None = None, **__: Any) -> ModelCard:  # noqa: A002
        """Return the run's card, or make a card with languages, mechanism, scores with signatures, and training.

        Args:
            license: the licence's identifier on the Hub, such as "cc-by-4.0"; None for the card's licence or "unknown".
        """
        run = self._run
        if (path := run.folder / CARD_NAME).is_file():
            card: ModelCard = ModelCard.load(path)
            if license is not None:
                card.data["license"] = license
            return card
        facts, choices = run.facts(), run.tree()["choices"]
        source, target = (facts.get("languages") or UNNAMED)[:2]
        codes = [code for code in (source, target) if code not in UNNAMED]
        scores = [run.scores(split) for split in run.splits()]
        name, versions = run.folder.resolve().name, dict(facts.get("versions", {}))
        data = ModelCardData(
            language=codes or None,
            library_name="nmt",
            pipeline_tag="translation",
            tags=["translation", "attention"],
            license=license or UNKNOWN,
            metrics=list(METRICS),
            model_name=name,
            eval_results=[
                _evaluated(split_scores, metric, facts, source, target)
                for split_scores in scores
                for metric in METRICS
                if metric != "bleu" or split_scores.get("judged_by") != "chrf"  # no BLEU where it is unreliable
            ]
            or None,
        )
        attends = self._translator.attends
        parts = [(key, what) for key, what in _MECHANISM if choices.get(key) and (attends or "/" not in key)]
        named = ["no attention" if choices[key] == "none" else f"{choices[key]} {what}" for key, what in parts]
        parameters = sum(parameter.numel() for parameter in self._translator.models[0].parameters())
        return ModelCard(
            Path(__file__)
            .with_name("hub_card.md")
            .read_text(encoding="utf-8")
            .format(
                metadata=data.to_yaml(),
                name=markdown(name),
                languages=f"from `{source}` to `{target}`" if len(codes) == 2 else "between languages not named",
                version=__version__,
                mechanism=", ".join(named),
                links=", translation.links())\n    translation.heatmap(" if attends else "",
                parameters=parameters,
                pieces=self._translator.tokenizer.target.size,
                scores=_table(scores),
                data=facts.get("data", "unknown"),
                pairs=int(facts.get("pairs", 0)),
                epochs=float(facts.get("epochs", 0)),
                steps=int(facts.get("step", 0)),
                minutes=float(facts.get("minutes", 0)),
                device=facts.get("device", "an unknown device"),
                versions=", ".join(f"{key} {value}" for key, value in versions.items() if key != "platform"),
            )
        )


def _contents(run: Run) -> dict[str, bytes]:
    """The contents of the files to save, by name."""
    run.check()
    names = [*WEIGHTS, *(f"tokenizer/{name}" for name in TOKENIZERS), "history.jsonl", "doubt.json"]
    contents = {name: path.read_bytes() for name in names if (path := run.folder / name).is_file()}
    with tempfile.TemporaryDirectory() as folder:
        copy = Run(Path(folder))
        copy.write_tree(portable(run.tree()))
        facts = {name: value for name, value in run.facts().items() if name != "examples"}  # text of the validation set
        write_json(copy.folder / "run.json", portable(facts))
        write_json(copy.folder / "overrides.json", [])  # empty, because the command line may contain paths
        written = ("config.yaml", "run.json", "overrides.json")
        return contents | {name: (copy.folder / name).read_bytes() for name in written}


def _evaluated(scores: dict[str, Any], metric: str, facts: dict[str, Any], source: str, target: str) -> EvalResult:
    """A score in the form of the Hub's metadata, with its signature among the arguments of the metric."""
    return EvalResult(
        task_type="translation",
        task_name=f"Translation {source}-{target}",
        dataset_type=str(facts.get("data", "text")),
        dataset_name=f"{facts.get('data', 'text')}, {scores['split']}",
        dataset_split=str(scores["split"]),
        metric_type=metric,
        metric_name=METRICS[metric],
        metric_value=round(float(scores[metric]["value"]), 2),
        metric_args={"signature": scores[metric]["signature"]},
    )


def _table(scores: Sequence[dict[str, Any]]) -> str:
    """The scores of each split as a Markdown table, with notes and the signatures of the metrics."""
    if not scores:
        return "The run has not been scored: `python -m nmt.evaluate run=FOLDER`."
    lines = ["| split | sentences | BLEU | chrF | TER | exact, % |", "|---|---:|---:|---:|---:|---:|"]
    for row in scores:
        values = [f"{row[metric]['value']:.2f}" for metric in METRICS]
        values.append(f"{row['exact_matches']:.1f}" if "exact_matches" in row else "-")
        lines.append(f"| {markdown(row['split'])} | {row['sentences']:,} | {' | '.join(values)} |")
    blind = [row for row in scores if row.get("judged_by") == "chrf"]
    notes = [f"{markdown(row['split'])}: most references are too short for BLEU. Read chrF and exact." for row in blind]
    signatures = {f"- {name}: `{row[metric]['signature']}`" for row in scores for metric, name in METRICS.items()}
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), *sorted(signatures)])


#: Choices that describe the mechanism, and the noun for each.
_MECHANISM = (
    ("encoder", "encoder"),
    ("decoder", "decoder"),
    ("attention/score", "score"),
    ("attention/window", "window"),
    ("attention/normaliser", "normaliser"),
    ("attention/read", "read"),
)
