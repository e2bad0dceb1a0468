"""What the study answers: runs made by hand, of which each row gets a known share of its words right."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from studying import agreeing, answers, converged, deviating, page, quoting, rows, taking, timing

from nmt.compare.results import Alignment, Result
from nmt.errors import UserError
from tests.compare.runs import result

SEEDS = (1, 2, 3)
NO_LONGER = converged.Trained([], [], [])


def runs(**qualities: float) -> list[Result]:
    return [
        result(f"{name.replace('_', '-')}-{seed}", seed, {}, part, split=page.SPLIT)
        for name, part in qualities.items()
        for seed in SEEDS
    ]


def found(made: list[Result], pairs: list[tuple[str, str]]) -> list[answers.Answer]:
    by_row = answers.by_row(made)
    return answers.answers(answers.Question("?", pairs), answers.RowNoise(by_row, page.SPLIT))


def test_every_contrast_is_between_two_rows_of_the_study() -> None:
    names = {row.name for row in rows.ROWS}
    pairs = [pair for question in answers.QUESTIONS for pair in (*question.pairs, *question.controls)]
    asked = [name for pair in pairs for name in pair]
    assert set(asked) <= names
    assert names - set(asked) == {"luong-location"}  # a mechanism of Luong et al. that no question is about


def test_a_contrast_is_the_difference_of_the_means_of_sacrebleu() -> None:
    made = runs(a=0.8, b=0.6)
    (answer,) = found(made, [("a", "b")])
    means = [sum(run.splits[page.SPLIT].scores["bleu"].value for run in made[at : at + 3]) / 3 for at in (0, 3)]
    assert answer.difference == pytest.approx(means[1] - means[0], abs=0.01)
    assert answer.significant


def test_p_values_are_corrected_within_the_question() -> None:
    made = runs(a=0.8, b=0.78, c=0.5)
    alone = found(made, [("a", "b")])[0].p
    one, other = found(made, [("a", "b"), ("a", "c")])
    assert one.p == pytest.approx(alone)
    assert (one.significant, other.significant) == (False, True)
    assert found(made, [("a", "c")])[0].p * 2 == pytest.approx(other.p)
    assert found(made, [("a", "nobody")]) == []


def test_the_sentence_says_what_the_tests_say() -> None:
    better, worse = answers.Answer("a", "b", 2.0, 0.001, 1.5), answers.Answer("a", "c", -2.0, 0.0001, 1.5)
    unclear = answers.Answer("a", "d", 0.5, 0.4, 1.5)
    gain, change = answers.Question("?", []), answers.Question("?", [], "change")
    assert answers.sentence(gain, [better]) == "Yes: `b` +2.00 against `a` (p = 0.001)."
    assert answers.sentence(gain, [worse]) == "No, worse: `c` -2.00 against `a` (p < 0.001)."
    assert answers.sentence(change, [worse]).startswith("Yes: ")
    assert answers.sentence(gain, [better, unclear]).startswith("In part: `b` ")
    assert answers.sentence(gain, [better, worse]).startswith("Mixed: `b` +2.00 against `a` (p = 0.001); `c` -2.00 ")
    assert answers.sentence(gain, [worse, unclear]).startswith("No gain was found: `c` -2.00 ")
    power = "Minimum detectable difference (power 80 %): 1.5 BLEU."
    nothing = f"No difference was found. Not significant: `d` +0.50 against `a` (p = 0.400). {power}"
    assert answers.sentence(gain, [unclear]) == nothing
    assert answers.sentence(gain, []) == "Not tested."
    other = unclear._replace(second="e", detectable=2.0)
    assert answers.sentence(gain, [unclear, other]).endswith(
        "Minimum detectable differences (power 80 %): 1.5 to 2.0 BLEU."
    )


def test_a_control_explains_the_answer_and_does_not_decide_it() -> None:
    question = answers.Question("?", [("a", "c")], controls=[("a", "b"), ("a", "d")], note="A note.")
    worse, better = answers.Answer("a", "c", -2.0, 0.001, 1.5), answers.Answer("a", "b", 2.0, 0.001, 1.5)
    unclear = answers.Answer("a", "d", 0.5, 0.4, 1.5)
    assert answers.sentence(question, [worse, better, unclear]) == (
        "No, worse: `c` -2.00 against `a` (p = 0.001). "
        "Control: `b` +2.00 against `a` (p = 0.001); `d` +0.50 against `a` (p = 0.400), which is not "
        "significant. A note."
    )
    assert answers.sentence(question, [better]) == "Not tested."


def test_lengths_are_those_where_the_test_finds_a_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty sentences of 2 to 14 words: the second row is right in those of 6 words and more, and only there."""
    monkeypatch.setattr(answers, "FEW", 5)
    made = runs(none=0.3, some=0.3)
    full = runs(some=1.0)
    for run, right in zip(made[3:], full, strict=True):
        for at, length in enumerate(run.splits[page.SPLIT].lengths):
            if length > 5:
                run.splits[page.SPLIT].counts["bleu"][at] = right.splits[page.SPLIT].counts["bleu"][at]
    by_row = answers.by_row(made)
    text = answers.by_length(by_row, page.SPLIT, "none", "some")
    gains, separator, rest = text.partition(" `some` is not significantly different from `none` at 1 to 5 words ")
    assert separator
    assert gains.startswith("`some` is significantly better than `none` at 6 to 10 words +")
    assert "; 11 to 15 words +" in gains
    assert "; " not in rest
    assert answers.by_length(by_row, page.SPLIT, "some", "none").startswith(
        "`none` is significantly worse than `some` at 6 to 10 words -"
    )
    everywhere = answers.by_length(answers.by_row(runs(none=0.3, some=0.9)), page.SPLIT, "none", "some")
    assert everywhere.startswith("`some` is significantly better than `none` in every range of lengths: ")
    assert answers.by_length(by_row, page.SPLIT, "none", "nobody") == "Not tested."


def aligned(attention: float, saliency: float) -> Alignment:
    rates = {"attention, shift 0": attention, "saliency": saliency}
    return Alignment("gold", 100, rates, "attention, shift 0", "", {"diagonal": 40.0})


def test_few_seeds_that_deviate_much_say_that_they_find_nothing() -> None:
    rows_of_two = {
        name: [
            run._replace(aligned={"g": aligned(40.0 + noise, 20.0)})
            for run, noise in zip(runs(**{name: 0.5}), (-deviation, deviation), strict=False)
        ]
        for name, deviation in {"some": 30.0, "loose": 38.0, "wild": 39.0}.items()
    }
    text = agreeing.agreement(rows_of_two, "gold")
    least = "median minimum detectable difference of these (power 80 %): over 100 points, so seeds are too few"
    assert f"3 rows not significantly different; {least}." in text


def test_weights_are_compared_with_a_diagonal_and_with_saliency() -> None:
    rates = {"good": (30.0, 20.0), "bad": (50.0, 20.0), "even": (40.0, 60.0)}
    made = {
        name: [
            run._replace(aligned={"g": aligned(attention + noise, saliency - noise)})
            for run, noise in zip(runs(**{name: 0.5}), (-0.5, 0.0, 0.5), strict=True)
        ]
        for name, (attention, saliency) in rates.items()
    }
    text = agreeing.agreement(made, "gold")
    assert agreeing.summary_of_links(made, "gold", 1) == [
        "| Does attention make fewer errors in word links than a straight diagonal? "
        "| Mixed (1 rows fewer, 1 more, 1 not significant): -10.0 to +10.0 points | - |",
        "| Does attention make fewer errors in word links than saliency? "
        "| Mixed (1 rows fewer, 2 more, 0 not significant): -20.0 to +30.0 points | - |",
    ]
    assert agreeing.summary_of_links(made, "other", 1) == []
    assert (
        "of 40.0 %: the weights of 1 row have significantly fewer errors (`good`); the weights of 1 row have "
        "significantly more errors (`bad`); 1 row not significantly different (`even`); median minimum detectable "
        "difference of these (power 80 %): " in text
    )
    assert "the weights of 2 rows have significantly more errors." in text
    assert agreeing.agreement(made, "other") == "Not tested."
    alone = {name: some[:1] for name, some in made.items()}
    assert agreeing.agreement(alone, "gold") == "Not tested: every row has one seed."


def test_what_to_take_is_what_may_be_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "BASE", "best")
    by_row = answers.by_row(runs(best=0.93, near=0.89, cheap=0.885, far=0.3))
    prices = {"best": 100.0, "near": 100.5, "cheap": 50.0, "far": 1.0}
    costs = {name: {"training": [cost, cost + 1], "translating": [10.0, 10.0]} for name, cost in prices.items()}
    text = taking.what_to_take(by_row, {page.SPLIT: "captions"}, costs)
    rows_of_table = [line.split(" |")[0] for line in text.splitlines() if line.startswith("| `")]
    assert rows_of_table[0] == "| `best`"
    assert set(rows_of_table[1:]) == {"| `near`", "| `cheap`"}
    assert "| 50 (0.50; 0.50 to 0.50) | 10 (1.00; 1.00 to 1.00) |" in text
    assert text.endswith("Of these, `cheap` has the lowest median cost in training, and `best` in search.")
    unknown = taking.what_to_take(by_row, {page.SPLIT: "captions"}, {})
    assert "| - | - |" in unknown
    assert "lowest median cost" not in unknown
    alone = taking.what_to_take(answers.by_row(runs(best=0.9, far=0.3)), {page.SPLIT: "captions"}, costs)
    assert "| `best` |" in alone
    assert "`far`" not in alone
    assert "| `far` | 1,000 | 2 (0.01; 0.01 to 0.02) | " in taking.all_costs(by_row, page.SPLIT, costs)
    assert "the median of 2 rounds" in taking.all_costs(by_row, page.SPLIT, costs)
    assert taking.all_costs(by_row, page.SPLIT, {}).startswith("| row | parameters | ")


def test_rows_that_may_be_the_best_everywhere_are_named() -> None:
    """On the long lines `near` and `best` have changed places, and are far apart."""
    by_row = answers.by_row(runs(best=0.93, near=0.925, far=0.3))
    long_lines = answers.by_row(runs(best=0.5, near=0.93, far=0.3))
    for name, some in by_row.items():
        for run, other in zip(some, long_lines[name], strict=True):
            run.splits["long"] = other.splits[page.SPLIT]  # type: ignore[index]
    text = taking.what_to_take(by_row, {page.SPLIT: "captions", "long": "long lines"}, {})
    assert re.search(r"\| `best` \| .* \| - \|\n", text)
    assert re.search(r"\| `near` \| .* \| long lines \|\n", text)
    assert text.endswith("May be the best on all test sets: `near`.")


def test_rows_that_deviate_more_than_others_are_named() -> None:
    shares = {"a": (0.80, 0.801, 0.802), "b": (0.60, 0.601, 0.602), "wild": (0.30, 0.5, 0.7)}
    made = [
        result(f"{name}-{seed}", seed, {}, share, split=page.SPLIT)
        for name, some in shares.items()
        for seed, share in zip(SEEDS, some, strict=True)
    ]
    *_, line = deviating.deviations(answers.by_row(made), {page.SPLIT: "captions"}, ["gold"]).splitlines()
    assert re.fullmatch(r"\| BLEU, captions \| 2\.\d\d \| `wild` 19\.\d\d \|", line), line


def test_a_row_may_be_below_the_best_by_more_than_its_means_are() -> None:
    by_row = answers.by_row(runs(best=0.93, near=0.92))
    candidates = taking.Candidates(by_row, page.SPLIT)
    assert set(candidates.names) == {"best", "near"}
    first, second = candidates.names
    assert candidates.loss(second) > candidates.bleu[first] - candidates.bleu[second] > 0
    assert candidates.loss(first) < candidates.loss(second)


def test_rows_with_one_seed_are_told() -> None:
    made = [run for run in runs(none=0.3, luong_general=0.8) if run.seed == 1 or run.name.startswith("none")]
    assert "\n\nSo far, 1 of 2 rows has one seed (`luong-general`). " in page.first_screen(
        made, page.tested(made), NO_LONGER, {}
    )
    alone = [run for run in made if run.seed == 1]
    assert "\n\nEvery row has one seed. " in page.first_screen(alone, page.tested(alone), NO_LONGER, {})


def test_all_questions_stand_on_the_first_screen() -> None:
    made = runs(none=0.3, luong_general=0.8)
    text = page.first_screen(made, page.tested(made), NO_LONGER, {})
    for question in answers.QUESTIONS:
        assert f"**{question.text}** " in text
    assert f"**{timing.QUESTION.text}** Not tested." in text
    assert "**Does attention help?** Yes: `luong-general` +" in text
    assert "**Is attention an explanation?** Not tested." in text
    table, caption, heading, tests = text.split("\n\n", 3)
    assert (caption, heading) == (page.CAPTION, f"### The tests on {page.SPLIT}")
    # Only what was measured is in the table, with the figures of the tests.
    row = r"\| Does attention help\? \| Yes \(1 of 1\): \+\d+\.\d\d \|"
    assert re.fullmatch(rf"\| question \| test_2016 \|\n\|---.*\n{row}", table), table
    difference = table.split("): ")[-1].removesuffix(" |")
    assert f"`luong-general` {difference} against `none`" in tests


def test_the_table_counts_contrasts_without_controls() -> None:
    question = answers.Question("Q?", [("a", "b"), ("a", "c")], controls=[("a", "d")])
    tested = [
        answers.Answer("a", "b", 2.0, 0.01, 1.0),
        answers.Answer("a", "c", -0.5, 0.3, 1.0),
        answers.Answer("a", "d", 9.0, 0.001, 1.0),
    ]
    assert answers.summary(["one", "other"], [(question, [tested, tested[1:2]])])[2:] == [
        "| Q? | In part (1 of 2): -0.50 to +2.00 | No difference was found (0 of 1): -0.50 |"
    ]
    assert answers.summary(["one", "other"], [(question, [tested])])[2:] == [
        "| Q? | In part (1 of 2): -0.50 to +2.00 | - |"
    ]
    assert answers.summary(["one"], [(question, [[]]), (question, [tested[2:]])])[2:] == []


def test_a_table_has_each_contrast_on_each_test_set() -> None:
    questions = answers.Question("Q?", []), answers.Question("R?", [])
    one, other = answers.Answer("a", "b", 2.0, 0.01, 1.0), answers.Answer("a", "c", -0.5, 0.3, 1.0)
    assert answers.contrasts(
        ["x", "y"], [(questions[0], [[one, other], [other, one]]), (questions[1], [[one], [one]])]
    )[2:] == [
        "| Q? | `b` | `a` | +2.00 (0.010) | -0.50 (0.300) |",
        "|  | `c` | `a` | -0.50 (0.300) | +2.00 (0.010) |",
        "| R? | `b` | `a` | +2.00 (0.010) | +2.00 (0.010) |",
    ]


def test_rows_that_are_worse_than_without_attention_are_named() -> None:
    noise = answers.RowNoise(answers.by_row(runs(none=0.5, good=0.8, bad=0.2, worse=0.3)), page.SPLIT)
    assert answers.worse_than(noise, "none") == (
        "But `bad`, `worse` are significantly worse than `none` (corrected by Holm for all rows)."
    )
    assert answers.worse_than(noise, "bad") == ""


def test_a_p_next_to_its_level_shows_the_side() -> None:
    assert answers.p_equation(0.0498) == "= 0.04980"
    assert answers.p_equation(0.0502) == "= 0.05020"
    assert answers.p_equation(0.0512) == "= 0.051"


def test_models_are_compared_when_both_have_had_the_same_time() -> None:
    """A row that costs twice as much a token has had 0.75 epochs when the other ends with 1.5."""
    by_row = answers.by_row(runs(luong_general=0.8, transformer=0.8))
    for runs_of_row in by_row.values():
        for run, shift in zip(runs_of_row, (-0.01, 0.0, 0.01), strict=True):
            for entry, value in zip(run.history, (10.0, 20.0, 30.0), strict=True):
                entry["valid_bleu"] = value + shift  # type: ignore[index]
    costs = {"luong-general": {"training": [100.0, 100.0]}, "transformer": {"training": [200.0, 200.0]}}
    assert [entry["epoch"] for entry in by_row["transformer"][0].history] == [0.5, 1.0, 1.5]
    text = answers.sentence(timing.QUESTION, timing.after_equal_time(by_row, costs))
    assert text.startswith("No, worse: `transformer` -15.00 against `luong-general` (p < 0.001).")
    costs["transformer"]["training"] = [100.0, 100.0]
    text = answers.sentence(timing.QUESTION, timing.after_equal_time(by_row, costs))
    assert text.startswith("No difference was found.")
    assert timing.after_equal_time(by_row, {}) == []


def test_other_pages_quote_the_rows_between_their_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quoting_page = tmp_path / "page.md"
    monkeypatch.setattr(
        quoting, "QUOTED", {quoting_page: {"luong-general": "the default", "none": "nothing", "far": "far"}}
    )
    by_row = answers.by_row(runs(luong_general=0.8, none=0.3, other=0.79))
    quoting_page.write_text(f"before\n{quoting.BEGIN}\nold\n{quoting.END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        quoting.quote(by_row, {page.SPLIT: "captions"})
    text = quoting_page.read_text("utf-8")
    assert text.startswith(f"before\n{quoting.BEGIN}\n\nBLEU is that on captions. ")
    end = f"\n\n{quoting.BETTER} captions: none.\n\n{quoting.END}\nafter\n"
    assert text.endswith(f" |{end}")
    bleu = answers.bleu_of_rows(by_row, page.SPLIT)
    assert f"| the default | `luong-general` | {bleu['luong-general']:.2f} |  |" in text
    assert f"| nothing | `none` | {bleu['none']:.2f} | {bleu['none'] - bleu['luong-general']:+.2f} (< 0.001) |" in text
    assert "`far`" not in text
    quoting.quote(answers.by_row(runs(luong_general=0.5, good=0.9, bad=0.2)), {page.SPLIT: "captions"})
    assert f"{quoting.BETTER} captions: `good`.\n" in quoting_page.read_text("utf-8")
    quoting_page.write_text("before\n", encoding="utf-8")
    with pytest.raises(UserError, match="no <!-- study: begin --> and"):
        quoting.quote(by_row, {page.SPLIT: "captions"})


def test_every_row_that_is_quoted_is_a_row_of_the_study() -> None:
    names = {row.name for row in rows.ROWS}
    assert all(names >= quoted.keys() for quoted in quoting.QUOTED.values())


def test_settings_are_those_with_the_lowest_perplexity() -> None:
    tuning = runs(none_1=0.5, none_2=0.5, none_3=0.5, none_4=0.5, bahdanau_1=0.5)
    for run, value in zip(tuning[::3], (7.0, 6.0, 6.5, 8.0, 4.0), strict=True):  # the first seed of each
        run.history[1]["valid_perplexity"] = value  # type: ignore[index]
        run.history[2]["valid_perplexity"] = 9.0  # type: ignore[index]
    text = converged.section(converged.Trained(tuning[::3], [], []), page.SPLITS, page.SILVER)
    assert "So far, 5 of 32 of the first trainings and 0 of 24 of the others are recorded." in text
    assert "| row | lr 0.0015, dropout 0.2 | lr 0.0015, dropout 0.35 | lr 0.003, dropout 0.2 |" in text
    assert "| `none` | 7.00 | **6.00** | 6.50 | 8.00 |" in text
    assert "| `bahdanau` | 4.00 | - | - | - |" in text  # nothing is chosen before all are trained
    assert "| `transformer` | - | - | - | - |" in text
    assert "All have chosen the lower dropout" not in text


def test_the_lower_dropout_is_named_if_all_have_chosen_it() -> None:
    tuning = runs(none_1=0.5, none_2=0.5, none_3=0.5, none_4=0.5, bahdanau_1=0.5, bahdanau_2=0.5, bahdanau_3=0.5)
    firsts = [*tuning, *runs(bahdanau_4=0.5)][::3]
    for run, value in zip(firsts, (7.0, 6.0, 5.5, 8.0, 1.0, 3.0, 2.0, 5.0), strict=True):
        run.history[1]["valid_perplexity"] = value  # type: ignore[index]
        run.history[2]["valid_perplexity"] = 9.0  # type: ignore[index]
    text = converged.section(converged.Trained(firsts, [], []), page.SPLITS, page.SILVER)
    assert "All have chosen the lower dropout; longer trainings may want more." in text
    firsts[5].history[1]["valid_perplexity"] = 0.9  # type: ignore[index]
    text = converged.section(converged.Trained(firsts, [], []), page.SPLITS, page.SILVER)
    assert "All have chosen the lower dropout" not in text
    assert "every setting is at the edge of the sweep" in text


def test_models_at_convergence_with_one_seed_are_not_compared_over_seeds() -> None:
    alone = runs(none=0.3, bahdanau=0.8, luong_general=0.8, transformer=0.5)[::3]
    trained = converged.Trained(alone, alone, [])
    assert "\n\nEvery row has one seed. " in converged.section(trained, page.SPLITS, page.SILVER)
    costs = {run.name[:-2]: {"training": [100.0]} for run in alone}
    ((question, tested),) = converged.self_attention(alone, page.SPLIT, costs)
    assert question.text.endswith(" epochs? (one seed)")
    assert question.note.endswith("another seed may reverse an answer.")
    assert tested[0].significant
    assert timing.after_equal_time(answers.by_row(alone), costs) == []


def test_models_at_convergence_have_scores_tests_and_the_other_direction() -> None:
    there = runs(none=0.3, bahdanau=0.8, luong_general=0.8, transformer=0.5)
    trained = converged.Trained(there[:1], there, runs(luong_general=0.9, luong_general_nofeed=0.5))
    text = converged.section(trained, page.SPLITS, page.SILVER)
    by_row = answers.by_row(there)
    bleu = answers.bleu_of_rows(by_row, page.SPLIT)
    assert "| row | runs | BLEU, test_2016 | best epoch |\n" in text
    assert f"| `none` | 3 | {bleu['none']:.2f} | 1.5 |" in text
    assert "**Does attention help?** Yes: `bahdanau` +" in text
    assert "Does the score matter?" not in text  # there is no such row
    back = text.partition("### English to German")[2]
    assert "**Does it matter when the decoder attends, and what it is fed?** Yes: `luong-general` +" in back
    assert "Does attention help?" not in back  # `none` is not trained in this direction
    costs = {name: {"training": [100.0]} for name in by_row}
    screen = page.first_screen(there, page.tested(there), trained, costs)
    assert f"**{converged.SELF_ATTENTION.text}** No, worse: `transformer` " in screen
    assert f"**{converged.EQUAL_TIME.text}** No, worse: `transformer` " in screen
    assert converged.SELF_ATTENTION.text not in page.first_screen(there, page.tested(there), NO_LONGER, costs)


def test_every_contrast_at_convergence_is_between_two_of_its_rows() -> None:
    names = {row.name for row in rows.CONVERGED}
    for question in (*converged.QUESTIONS, converged.SELF_ATTENTION, converged.EQUAL_TIME):
        assert names.issuperset(name for pair in question.pairs for name in pair)
