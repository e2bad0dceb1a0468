"""Which attention a heatmap shows: the setting `view`, the heads that it has, and the view of a translation."""

from nmt.errors import UserError
from nmt.translation.heads import ALL, AUTO, alternatives, drawn
from nmt.translation.stepping import heads_of
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, View


def pictured_head(attention: View, head: str, translator: Translator) -> str:
    """The heads that heatmaps of an attention show, as `head` names them; "auto" is every head of self-attention.

    Raises:
        UserError: the model has no such attention, or the attention has no such heads.
    """
    model = translator.models[0]
    heads = {
        "encoder": model.encoder.heads,
        "decoder": model.decoder.self_heads,
        "cross": heads_of(translator.models),
        "context": heads_of(translator.models),
    }[attention]
    if attention == "context" and not (heads and translator.context_sentences):
        raise UserError(
            "view=context shows the sentences before the source, but this run sees none, or has no attention. Leave it "
            "out, or use a run with context.sentences=N."
        )
    if attention != "cross" and len(translator.models) > 1:
        raise UserError(f"view={attention} needs one run, not an ensemble. Give run=checkpoints/NAME.")
    if attention in ("encoder", "decoder"):
        if not heads:
            raise UserError(
                f"view={attention} shows the self-attention of the {attention}, but this run's {attention} has "
                f"none. Leave it out, or use a run with {attention}=transformer."
            )
        if head == AUTO:
            return ALL
    if heads and not drawn(head, heads):
        several = f", {ALL}" if len(heads) > 1 else ""
        raise UserError(f"head={head} does not exist. Give head={AUTO}{several}, {alternatives(heads)}.")
    return head


def view_of(translator: Translator, attention: View, translation: Translation) -> Translation | None:
    """A translation with the weights of an attention; None if it cannot be seen, such as a line in parts."""
    if attention == "cross":
        return translation
    (views,) = translator.look([translation])
    return None if views is None else views._asdict()[attention]
