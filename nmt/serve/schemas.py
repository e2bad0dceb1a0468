"""The models that check request bodies, and that `/openapi.json` describes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from nmt.inspection.details import Detail
from nmt.inspection.explanation import METHODS, Method
from nmt.serve.problems import ProblemError
from nmt.translation.glossary import Keep

#: Maximum number of fields in an object: pydantic would make an error for each unknown field.
MOST_FIELDS = 50
# pydantic rejects lone surrogates only in text with a maximum length.
Text = Annotated[str, Field(strict=True, max_length=2**31)]
# Stop at the first error in a list: a body could cause a million errors.
Texts = Annotated[list[Text], Field(fail_fast=True)]
Include = Annotated[list[Detail], Field(fail_fast=True, max_length=100)]
Natural = Annotated[StrictInt, Field(ge=0)]
Positive = Annotated[StrictInt, Field(ge=1)]
Penalty = Annotated[float, Field(ge=0, le=100)]


class Body(BaseModel):
    """Base class of all bodies: limits the number of fields, and rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MOST_FIELDS:
            raise ProblemError(422, f"{len(data):,} fields.", limit=MOST_FIELDS, cure="GET /docs lists the fields.")
        return data


class SearchBody(Body):
    """Changes to the search of the run; the server has further limits."""

    beam_size: Positive | None = None
    length_penalty: Penalty | None = None
    coverage_penalty: Penalty | None = None
    nbest: Positive | None = None
    max_length: Annotated[Positive | None, Field(description="most pieces of a translation")] = None


class PinBody(Body):
    """The source pieces that a step of the translation attends to."""

    step: Annotated[StrictInt, Field(ge=0, le=999)]
    source: Annotated[list[Natural], Field(fail_fast=True, min_length=1, max_length=1000)]
    weight: Annotated[
        float, Field(strict=True, ge=0, le=1, description="of all of them; the other pieces share the rest")
    ] = 1.0


Context = Annotated[
    Texts,
    Field(max_length=1000, description="the sentences before the first line in its document, the nearest one last"),
]
Pins = Annotated[list[PinBody], Field(fail_fast=True, max_length=1000)]
KeepWords = Annotated[
    StrictBool,
    Field(description="whether the words before the first pinned step stay; with false, and with a prefix, the search "
          "is free from the start"),
]  # fmt: skip


class ModelBody(Body):
    """A request to a model of the server, about texts with their context."""

    model: Annotated[Text | None, Field(description="the id of a model of GET /v1/models; the first if null")] = None
    context: Context = []


Term = Annotated[Text, Field(max_length=200)]
Terms = Annotated[
    dict[Term, Term | Annotated[list[Term], Field(fail_fast=True, min_length=1, max_length=20)]],
    Field(max_length=1000, description="terms that translations must use: source term to target term or its forms"),
]
Kept = Annotated[list[Keep], Field(max_length=10, description="what is kept as it is")]


class TranslateBody(ModelBody):
    """Texts to translate, one line each."""

    text: Text | Texts
    search: SearchBody = SearchBody()
    prefix: Annotated[Text | Texts, Field(description="the beginning of each translation")] = ""
    documents: Annotated[
        Literal["none", "one", "blank"],
        Field(description="whether lines are context of those after them: the lines of one document, or of several "
              "with an empty line between"),
    ] = "none"  # fmt: skip
    pins: Pins = []
    keep_words: KeepWords = True
    glossary: Terms = {}
    keep: Kept = []
    memory: Annotated[bool, Field(description="whether texts in the file of memory= get its translations")] = True
    include: Include = ["alignment"]


class ScoreBody(ModelBody):
    """A text, and a translation to score."""

    text: Text
    target: Text
    include: Include = ["alignment"]


class EditsBody(Body):
    """The changes of a what-if request."""

    text: Text | None = None
    prefix: Text = ""
    pins: Pins = []
    context: Annotated[Context | None, Field(description="other sentences before the text; null for the same")] = None
    keep_words: KeepWords = True


class TemperatureBody(Body):
    """A step of the translation, and the temperature, by which the energies of all its heads are divided."""

    step: Annotated[StrictInt, Field(ge=0, le=999)]
    value: Annotated[float, Field(strict=True, ge=0.01, le=100)]


class WhatIfBody(ModelBody):
    """A text to translate with and without changes."""

    text: Text
    prefix: Annotated[Text, Field(description="how both translations begin; edits.prefix takes precedence")] = ""
    search: SearchBody = SearchBody()
    include: Include = ["alignment"]
    edits: EditsBody = EditsBody()
    sweep: Annotated[
        Natural | Annotated[list[Natural], Field(fail_fast=True, min_length=1, max_length=100)] | None,
        Field(
            description="a step that looks at each source piece in turn, or the steps of a word, at each source word"
        ),
    ] = None
    temperature: TemperatureBody | None = None


class ExplainBody(ModelBody):
    """A text, its translation (null for the model's translation), and the measures to compare."""

    text: Text
    target: Text | None = None
    word: Annotated[
        StrictInt | Text | None,
        Field(description="a word of the translation, by its number from 0 or its spelling; null for all words"),
    ] = None
    methods: Annotated[list[Method], Field(fail_fast=True, min_length=1, max_length=100)] = list(METHODS)
    head: Annotated[
        Term | None, Field(description='of the weights: a head such as 2.1, "2.mean" or "mean"; null for that of links')
    ] = None
    shift: Annotated[StrictInt, Field(ge=0, le=1, description="1 gives each row of weights to the word before")] = 0


Sentence = Annotated[Text, Field(min_length=1, max_length=10_000)]


class CorrectionBody(Body):
    """A source sentence and its translation by a person."""

    model: Annotated[Text | None, Field(description="the model whose run keeps it; the first if null")] = None
    source: Sentence
    target: Sentence


class MemoryBody(Body):
    """A text to find similar pairs for."""

    model: Text | None = None
    text: Sentence


class LibreBody(Body):
    """A request of LibreTranslate's clients, which may also send unused and empty fields."""

    model_config = ConfigDict(extra="ignore")

    q: Text | Texts
    source: Text = "auto"
    target: Text = ""
    format: Literal["text", "html"] = "text"
    glossary: Terms = {}
    keep: Kept | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name == "q" or value not in (None, "")}
