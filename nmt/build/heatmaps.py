"""The attention that heatmaps show, selected by the setting `view`, and its heads."""

from nmt.system.errors import UserError
from nmt.translation.named_heads import ALL, AUTO, Heads, choose_head, names_all
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, View


def linked_head(view: View, head: str, translator: Translator) -> str:
    """The setting `head` for links; "auto" if `head` is only for pictures (UserError if the head does not exist)."""
    if view != "cross" or names_all(head):
        return AUTO
    if head != AUTO:
        choose_head(translator.heads, head)
    return head


def pictured_head(view: View, head: str, translator: Translator) -> str:
    """The setting `head` for the heatmaps of an attention, checked; "auto" means all heads for self-attention.

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
    """The translation with the weights of a view; None if they are not available, as for a line that was split."""
    if view == "cross":
        return translation
    (views,) = translator.look([translation])
    return None if views is None else views._asdict()[view]
