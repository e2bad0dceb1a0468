"""The attention that heatmaps show, as the setting `view` names it, and its heads."""

from nmt.system.errors import UserError
from nmt.translation.named_heads import ALL, AUTO, Heads, choose_head, names_all
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, View


def linked_head(view: View, head: str, translator: Translator) -> str:
    """The setting `head` for links: "auto" where it names the heads of pictures (UserError if it does not exist)."""
    if view != "cross" or names_all(head):
        return AUTO
    if head != AUTO:
        choose_head(translator.heads, head)
    return head


def pictured_head(view: View, head: str, translator: Translator) -> str:
    """The heads that heatmaps of an attention show, as `head` names them; "auto" is every head of self-attention.

    Raises:
        UserError: the model has no such attention, or the attention has no such heads.
    """
    model = translator.models[0]
    of_view = {"encoder": model.encoder.heads, "decoder": model.decoder.self_heads}.get(view, translator.heads.names)
    if view == "context" and not (of_view and translator.context_sentences):
        raise UserError(
            "view=context shows the sentences before the source, but this run sees none, or has no attention. Leave it "
            "out, or use a run with context.sentences=N."
        )
    if view != "cross" and len(translator.models) > 1:
        raise UserError(f"view={view} needs one run, not an ensemble. Give run=checkpoints/NAME.")
    if view in ("encoder", "decoder"):
        if not of_view:
            raise UserError(
                f"view={view} shows the self-attention of the {view}, but this run's {view} has none. Leave it out, or "
                f"use a run with {view}=transformer."
            )
        if head == AUTO:
            return ALL
    heads = Heads(of_view)
    if of_view and not heads.side_by_side(head):
        several = f", {ALL}" if len(of_view) > 1 else ""
        raise UserError(f"head={head} does not exist. Give head={AUTO}{several}, {heads.alternatives}.")
    return head


def view_of(translator: Translator, view: View, translation: Translation) -> Translation | None:
    """A translation with the weights of an attention; None if it cannot be seen, such as a line in parts."""
    if view == "cross":
        return translation
    (views,) = translator.look([translation])
    return None if views is None else views._asdict()[view]
