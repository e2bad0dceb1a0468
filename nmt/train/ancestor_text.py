"""The text of the ancestor (start=RUN): at the place that its settings name, or at a new place (start_data=).

The ancestor's data settings are used only if this user made the run (`nmt.runs.trust`) or allows it (start_data=run),
or if they name a built-in corpus.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from nmt.build.open import OpenRun, data_words, describes, may_use, open_run
from nmt.build.parts import build_source
from nmt.build.paths import pipes_of
from nmt.config.composition import compose
from nmt.data.dataset import Split
from nmt.data.languages import UNNAMED
from nmt.system.errors import UserError

#: Maximum length of a chain of fine-tuned runs, to detect cycles.
MOST_ANCESTORS = 10


@dataclass(frozen=True, eq=False)
class AncestorText:
    """The text of a run.

    Attributes:
        run: the run.
        data: where the text is now: files, a folder, "run" for the place in the run's settings, trusted or not; None
            for the same place if the settings are trusted.
        cache: the folder for facts about large files.
    """

    run: OpenRun
    data: str | Sequence[str] | None
    cache: Path
    depth: int = 0

    def read(self, name: str) -> Split:
        """Read the "train" or "valid" split.

        Raises:
            UserError: the data settings are not trusted, the text is missing, or it differs from the run's text.
        """
        split = self._read(name)
        if not self._is_same(split):
            changed = f"The text of {name} has changed since {self.run.folder} was trained."
            raise UserError(changed if self.data in (None, "run") else f"{self._word} has another text of {name}.")
        return split

    def read_for_mix(self, needs: str, known: str | None, say: Callable[[str], None]) -> Split:
        """Read the text to mix into batches; a resumed run passes the fingerprint that it has saved as `known`.

        The text that `data` names may differ from the text that the run was trained on; `say` then gets a note.

        Raises:
            UserError: see `read`, or the text differs from `known`; the message begins with `needs`.
        """
        try:
            split = self.read("train") if self.data in (None, "run") else self._read("train")
        except UserError as error:
            raise UserError(f"{needs}: {error} Without this text, leave out start_mix.") from error
        if known is not None and split.fingerprint() != known:
            raise UserError(f"{needs}, which has changed since this run began. Restore it, or train a new run.")
        if known is None and not self._is_same(split):
            say(f"{self._word} is not the text that {self.run.folder} was trained on. It is mixed in all the same.")
        return split

    @property
    def _word(self) -> str:
        data = self.data or ()
        return f"start_data={data if isinstance(data, str) else '[' + ','.join(data) + ']'}"

    def _is_same(self, split: Split) -> bool:
        fingerprint = split.fingerprint()
        return bool(self.run.facts.get("text", {}).get(split.name, fingerprint) == fingerprint)

    def _read(self, name: str) -> Split:
        config, files = self.run.config, self.run.files
        is_trusted = may_use(config) or files.is_own() or self.data == "run"
        if self.data in (None, "run") and not is_trusted:
            raise UserError(
                f"{self.run.folder} was made or changed elsewhere, so its data settings are not used: "
                f"{' '.join(data_words(files))}. Say where this text is now: {self._place()}. If you trust these "
                "settings: start_data=run."
            )
        start = config.get("start")
        if is_trusted and start and name == "valid" and config.data.get("valid_pairs") == 0:
            return self._read_of_ancestor(open_run(Path(str(start))), config.get("start_data"))
        if self.data not in (None, "run"):
            config = self._moved(config, is_trusted)
        if pipes := pipes_of(config.data):
            raise UserError(f"{pipes}: a pipe, and its text was not kept.")
        where = f"Say where the text of {self.run.folder} is now: {self._place()}."
        for path in map(str, config.data.get("files") or ()):
            if not Path(path).expanduser().is_file():
                raise UserError(f"There is no file {path}. {where}")
        with describes(files, "a data set", as_saved=True):
            source = build_source(config)
        source.known = self.cache
        try:
            return source.read(name)
        except UserError as error:
            raise UserError(f"{error} {where}") from error

    def _read_of_ancestor(self, ancestor: OpenRun, data: str | Sequence[str] | None) -> Split:
        """Read the validation set of this run's own ancestor from `data`, or else from `self.data`."""
        if self.depth > MOST_ANCESTORS:
            raise UserError(f"{self.run.folder} goes on from itself. Start from another run.")
        try:
            return AncestorText(ancestor, data, self.cache, self.depth + 1).read("valid")
        except UserError:
            if self.data is None:
                raise
            return AncestorText(ancestor, self.data, self.cache, self.depth + 1).read("valid")

    def _place(self) -> str:
        """The start_data= setting to give, with placeholders for the paths."""
        data, choice = self.run.config.data, self.run.config.choices["data"]
        if choice == "text":
            return "'start_data=[TRAIN,VALID]', the prefixes of its files"
        return "start_data=FOLDER" if "root" in data else "'start_data=[SOURCE,TARGET]', or start_data=TABLE"

    def _moved(self, config: DictConfig, is_trusted: bool) -> DictConfig:
        """The configuration with the paths of `data`; the other paths of an untrusted run are removed."""
        names = [self.data] if isinstance(self.data, str) else [*(self.data or ())]
        choice, settings = config.choices["data"], config.data
        changes: dict[str, Any] = {} if is_trusted else {"valid": None, "test": None}
        if "root" in settings or choice == "text":
            keys = ["root"] if "root" in settings else ["train", "valid"]
            if len(names) != len(keys):
                raise UserError(f"{self._word}: the text of {self.run.folder} is data={choice}. Give {self._place()}.")
            changes = {**dict(zip(keys, names, strict=True)), **({"test": None} if choice == "text" else {})}
        elif not names:
            raise UserError(f"{self._word} names no text. Give {self._place()}.")
        else:
            settings = settings if "files" in settings else compose("train", ["data=files"]).data
            languages = dict(zip(("source", "target"), self.run.languages, strict=True))
            changes |= {"files": names, **({} if {*languages.values()} & {*UNNAMED} else languages)}
        tree: Any = OmegaConf.to_container(settings, resolve=True)
        config = config.copy()
        OmegaConf.set_struct(config, False)
        config.data = {**tree, **changes, "train_links": None}
        return config
