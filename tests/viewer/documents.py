"""Documents worked by hand: what the viewer shows of them is known without it."""

from typing import Any

#: Text that must be shown as it is: a tag, the end of a script, escapes, marks, text from right to left.
HOSTILE = [
    "<unk> &lt; <img src=x onerror=\"document.title='run'\">",
    "</script><script>document.title='run'</script>",
    "<!--<script> \\u003c %3Cb%3E \x1b[31m red \x07",
    "e\u0301 \u0301alone \u202eevil\u202c",
    "سلام دنیا",
]


def side(text: str, pieces: list[tuple[str, int | None, int | None, int | None]]) -> dict[str, Any]:
    """One side: its words are those at white space."""
    words, start = [], 0
    for word in text.split():
        start = text.index(word, start)
        words.append({"text": word, "start": start, "end": start + len(word)})
        start += len(word)
    first = next((char for char in text if char.isalpha()), "a")
    return {
        "text": text,
        "direction": "rtl" if "\u0590" <= first <= "\u08ff" else "ltr",
        "spaced": True,
        "words": words,
        "pieces": [{"text": piece, "start": begin, "end": end, "word": word} for piece, begin, end, word in pieces],
    }


def whole_words(text: str) -> dict[str, Any]:
    """A side with a piece for each word, and the end of sentence."""
    made = side(text, [])
    made["pieces"] = [{**word, "word": at} for at, word in enumerate(made["words"])]
    made["pieces"].append({"text": "</s>", "start": None, "end": None, "word": None})
    return made


def document(source: dict[str, Any], target: dict[str, Any], weights: list[list[list[float]]], **more: Any) -> Any:
    """A translation of one hypothesis with weights [H][T][S]."""
    shape = [len(weights), len(weights[0]), len(weights[0][0])]
    flat = [value for head in weights for row in head for value in row]
    heads = ["0"] if len(weights) == 1 else [f"{1 + at // 2}.{1 + at % 2}" for at in range(len(weights))]
    cross = {"heads": heads, "shape": shape, "data": flat, "bytes": None}
    figures = {"score": -0.5, "log_prob": -1.0, "complete": True, "alignment": None, "stages": None}
    hypothesis = {**target, **figures, "weights": {"cross": cross, "encoder": None, "decoder": None}, **more}
    return {"format": "nmt.translation", "version": 1, "source": source, "hypotheses": [hypothesis], "beam": None}


def dogs(**more: Any) -> Any:
    """The pair "Zwei Hunde", "two dogs": the second source word has two pieces, 0.25 + 0.375 of "dogs"."""
    source = side("Zwei Hunde", [("▁Zwei", 0, 4, 0), ("▁Hun", 5, 8, 1), ("de", 8, 10, 1), ("</s>", None, None, None)])
    target = side("two dogs", [("▁two", 0, 3, 0), ("▁dogs", 4, 8, 1), ("</s>", None, None, None)])
    weights = [[[0.75, 0.125, 0.0, 0.125], [0.25, 0.25, 0.375, 0.125], [0.0, 0.0, 0.0, 1.0]]]
    return document(source, target, weights, **more)


def stages() -> list[dict[str, Any]]:
    """Stages of `dogs` with a local-p window: centre 1, two pieces visible, energies 0 and log 3."""
    energies = [0.0, 1.0986122886681098, 5.0, None] * 3
    return [
        {
            "heads": ["0"],
            "shape": [1, 3, 4],
            "score": "dot",
            "equation": "e_tj = q_t^T k_j",
            "window": "local_p",
            "normaliser": "softmax",
            "normalisation": "a_tj = exp(e_tj / tau) / sum_i exp(e_ti / tau)",
            "is_softmax": True,
            "read": "soft",
            "energies": energies,
            "visible": [1, 1, 0, 0] * 3,
            "bias": None,
            "shares": [0.25, 0.75, 0.0, 0.0] * 3,
            "factor": [0.5, 1.0, 0.0, 0.0] * 3,
            "weights": [0.125, 0.75, 0.0, 0.0] * 3,
            "centres": [1.0] * 3,
            "radius": 1,
            "sigma": 0.5,
            "slots": None,
        }
    ]


def beam() -> dict[str, Any]:
    """A beam of two: "two dogs" and "dogs"."""

    def node(number: int, parent: int | None, step: int, text: str, log_prob: float, total: float, **more: Any) -> Any:
        place = {"id": number, "parent": parent, "step": step, "text": text, "log_prob": log_prob, "total": total}
        return {**place, "state": "open", "score": None, "hypothesis": None, **more}

    return {
        "size": 2,
        "nodes": [
            node(0, None, -1, "<s>", 0.0, 0.0),
            node(1, 0, 0, "▁two", -0.1, -0.1),
            node(2, 0, 0, "▁dogs", -2.0, -2.0),
            node(3, 1, 1, "▁dogs", -0.2, -0.3),
            node(4, 2, 1, "</s>", -0.5, -2.5, state="ended", score=-1.25, hypothesis=1),
            node(5, 3, 2, "</s>", -0.7, -1.0, state="ended", score=-0.5, hypothesis=0),
        ],
    }


def hostile(text: str) -> Any:
    """A translation of a hostile text into itself, each word looking at itself."""
    source, target = whole_words(text), whole_words(text)
    count = len(source["pieces"])
    return document(source, target, [[[float(row == column) for column in range(count)] for row in range(count)]])
