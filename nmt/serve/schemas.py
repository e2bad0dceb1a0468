"""The bodies of requests, checked: what `/openapi.json` describes."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from nmt.inspection.details import Detail
from nmt.inspection.explanation import METHODS, Method
from nmt.serve.problems import ProblemError, invalid
from nmt.translation.glossary import Keep

#: Fields of an object, of which the bodies here have fewer.
MOST_FIELDS = 50
# The first error in a list is enough: a body has room for a million.
Texts = Annotated[list[StrictStr], Field(fail_fast=True)]
Include = Annotated[list[Detail], Field(fail_fast=True, max_length=100)]
Position = Annotated[StrictInt, Field(ge=0)]


class Checked(BaseModel):
    """What all bodies share: few fields, and text of whole characters."""

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        if isinstance(data, dict):
            if len(data) > MOST_FIELDS:
                raise ProblemError(422, f"{len(data):,} fields.", limit=MOST_FIELDS, cure="GET /docs lists the fields.")
            for field, value in data.items():
                try:
                    json.dumps([field, value], ensure_ascii=False, default=repr).encode()
                except UnicodeEncodeError as error:
                    field = field.encode(errors="replace").decode()
                    raise invalid(field, "has half of a surrogate pair.", cure="Send whole characters.") from error
        return data


class Body(Checked):
    """What the bodies of this interface share: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SearchBody(Body):
    """Changes to the search of the run; the bounds beyond these are the server's."""

    beam_size: Annotated[StrictInt, Field(ge=1)] | None = None
    length_penalty: Annotated[float, Field(ge=0, le=100)] | None = None
    coverage_penalty: Annotated[float, Field(ge=0, le=100)] | None = None
    nbest: Annotated[StrictInt, Field(ge=1)] | None = None
    max_length: Annotated[StrictInt, Field(ge=1, description="most pieces of a translation")] | None = None


class PinBody(Body):
    """The source pieces that a step of the translation may look at."""

    step: Annotated[StrictInt, Field(ge=0, le=999)]
    source: Annotated[list[Position], Field(fail_fast=True, min_length=1, max_length=1000)]


Context = Annotated[
    Texts,
    Field(max_length=1000, description="the sentences before the first line in its document, the nearest one last"),
]
Pins = Annotated[list[PinBody], Field(fail_fast=True, max_length=1000)]


class ModelBody(Body):
    """A request to one of the models that the server has."""

    model: Annotated[StrictStr | None, Field(description="the id of a model of GET /v1/models; the first if null")] = (
        None
    )


Term = Annotated[StrictStr, Field(max_length=200)]
Terms = Annotated[
    dict[Term, Term | Annotated[list[Term], Field(fail_fast=True, min_length=1, max_length=20)]],
    Field(max_length=1000, description="terms that translations must use: source term to target term or its forms"),
]
Kept = Annotated[list[Keep], Field(max_length=10, description="what is kept as it is")]


class TranslateBody(ModelBody):
    """Texts to translate, a line each."""

    text: StrictStr | Texts
    search: SearchBody = SearchBody()
    prefix: Annotated[StrictStr | Texts, Field(description="the beginning of each translation")] = ""
    context: Context = []
    documents: Annotated[
        Literal["none", "one", "blank"],
        Field(description="whether lines are context of those after them: the lines of one document, or of several "
              "with an empty line between"),
    ] = "none"  # fmt: skip
    pins: Pins = []
    glossary: Terms = {}
    keep: Kept = []
    include: Include = ["alignment"]


class ScoreBody(ModelBody):
    """A text and a translation whose probability is asked for."""

    text: StrictStr
    target: StrictStr
    context: Context = []
    include: Include = ["alignment"]


class EditsBody(Body):
    """What is changed."""

    text: StrictStr | None = None
    prefix: StrictStr = ""
    pins: Pins = []
    context: Annotated[Context | None, Field(description="other sentences before the text; null for the same")] = None


class WhatIfBody(ModelBody):
    """A text, and what is changed."""

    text: StrictStr
    prefix: Annotated[StrictStr, Field(description="how both translations begin; edits.prefix takes precedence")] = ""
    context: Context = []
    search: SearchBody = SearchBody()
    include: Include = ["alignment"]
    edits: EditsBody = EditsBody()
    sweep: Annotated[StrictInt, Field(ge=0, description="a step to pin to each source piece in turn")] | None = None


class ExplainBody(ModelBody):
    """A text, a translation of it or that of the model, and the measures to compare."""

    text: StrictStr
    target: StrictStr | None = None
    word: Annotated[
        StrictInt | StrictStr | None,
        Field(description="a word of the translation, by its number from 0 or its spelling; null for all words"),
    ] = None
    context: Context = []
    methods: Annotated[list[Method], Field(fail_fast=True, min_length=1, max_length=100)] = list(METHODS)


class LibreBody(Checked):
    """A request of LibreTranslate's clients; they may send fields that have no meaning here, and empty ones."""

    q: StrictStr | Texts
    source: str = "auto"
    target: str = ""
    format: Literal["text", "html"] = "text"
    alternatives: int = 0
    glossary: Terms = {}
    keep: Kept = []

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name == "q" or value not in (None, "")}
