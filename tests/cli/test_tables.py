"""Tables as they are printed on a terminal of 80 columns."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.results.builder import cell, measured, result, score
from tests.tiny import tiny
from tombola.attacks.report import AttackReport, Example
from tombola.cli import console, tables
from tombola.cli.outcome import show_compression, show_notes, show_tables
from tombola.cli.tables.layout import Column, Grid
from tombola.evaluation.scores import Score
from tombola.masks import Mask, Units
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.results.compression import Compression
from tombola.results.decisions import Transfer
from tombola.shrink.onnx import Export, Int8
from tombola.shrink.sizes import Row, Speedup
from tombola.tickets.comparison import Comparison

SPLIT = re.compile(r"…")


def printed(table, width=80):
    """The lines of a table; none is longer than the terminal, and nothing was cut off."""
    written = StringIO()
    Console(width=width, file=written).print(table)
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert not SPLIT.search(written.getvalue())
    return lines


def holds(lines, *texts):
    """Whether every text stands in one line, whole."""
    for text in texts:
        assert any(re.search(rf"(?<!\S){re.escape(text)}(?!\S)", line) for line in lines), text
    return True


def judged(variant, test, product, under, sparsity=None, ratio=None, **changes):
    return cell(
        variant,
        {"test": score(test, 300), "reviews_product/test": score(product, 300)},
        sparsity,
        under={"deepwordbug": under},
        measured=measured(ratio),
        **changes,
    )


def quickstart(*more):
    cells = [judged("dense", 0.824, 0.751, 0.31), judged("robust ticket", 0.812, 0.74, 0.42, 0.417, 1.42)]
    return result(*cells, *more, name="quickstart")


def test_the_quick_start_reads_at_a_glance():
    lines = printed(tables.result_table(quickstart()))
    assert holds(
        lines,
        "dense", "robust ticket", "82.4 % ± 2.2", "75.1 % ± 2.5", "31.0 % ± 4.6", "41.7 %", "1.42 (1.37–1.47)",
        "sparsity (prunable weights)", "parameters left", "product", "deepwordbug", "speed-up, batch 32", "10 → 7.04",
    )  # fmt: skip
    assert "accuracy ± standard error, one seed" in lines
    assert "product: reviews_product/test; deepwordbug: accuracy under attack" in lines
    assert len([line for line in lines if "accuracy" in line]) == 2  # once for all, once for the attack


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_however_many_variants_there_are_nothing_is_broken(rows):
    names = ["random", "magnitude, rewound", "iterative magnitude pruning", "early", "GraSP", "learned"][
        :rows
    ]
    more = [judged(name, 0.6, 0.5, 0.2, 0.5, 1.3) for name in names]
    lines = printed(tables.result_table(quickstart(*more)))
    assert holds(lines, *names, "82.4 % ± 2.2", "31.0 % ± 4.6", "1.50 (1.45–1.55)", "product", "deepwordbug")


def test_many_data_sets_go_in_blocks_with_the_names_repeated():
    on = [
        "validation",
        *(f"reviews_{name}/test" for name in ("product", "tweets", "newspaper", "hotels", "books")),
    ]
    cells = [
        cell(f"a rather long name number {index}", dict.fromkeys(on, 0.5 + index / 20)) for index in range(6)
    ]
    lines = printed(tables.result_table(result(*cells)))
    assert holds(lines, "validation", "product", "tweets", "newspaper", "hotels", "books", "75.0 % ± 4.3")
    assert sum("a rather long name number 5" in line for line in lines) == 2


def test_a_name_that_leaves_no_room_is_wrapped_between_words():
    name = " ".join(["an unusually long name of a variant that goes on"] * 3)
    cells = [cell(name, 0.8), *(cell(f"v{index}", 0.7) for index in range(5))]
    lines = printed(tables.result_table(result(*cells)))
    assert holds(lines, "unusually", "variant", "80.0 % ± 4.0")


def test_seeds_are_told_and_axes_that_do_not_vary_are_in_the_title():
    imp = {"search": {"method": "iterative"}}
    cells = [cell("dense", 0.8 + 0.01 * seed, None, seed, task="rte") for seed in range(3)]
    for step in (0.1, 0.2):
        cells += [
            cell("imp", 0.8 + 0.01 * seed, 0.5, seed, recipe=imp, **{"task": "rte", "search.step": step})
            for seed in range(3)
        ]
    lines = printed(tables.result_table(result(*cells)))
    assert lines[0] == "r: task rte"
    assert "accuracy, mean ± standard deviation over 3 seeds" in lines
    assert holds(lines, "step", "0.1", "0.2", "81.0 % ± 1.0")


def test_a_correlation_is_a_number_and_metrics_that_differ_are_in_the_headings():
    scores = {"validation": {"pearson": Score(-0.347, 0.021, 50, "Fisher z")}, "test": {"accuracy": 0.5}}
    lines = printed(tables.result_table(result(cell("dense", scores), cell("imp", scores, 0.5))))
    assert holds(lines, "−0.347 ± 0.021", "50.0 % ± 5.0", "pearson", "accuracy")


def test_doubts_stand_below_the_table():
    found = result(cell("dense", 0.5, constants={"validation": 0.5}))
    text = " ".join(" ".join(printed(tables.result_table(found))).split())
    assert (
        "note: dense has not learned the task: 50.0 % on validation, where a constant answer scores 50.0 %"
        in text
    )


def test_text_in_brackets_stays_text():
    assert holds(printed(tables.result_table(result(cell("[bold]x[/bold]", 0.5)))), "[bold]x[/bold]")


def test_the_phases_with_their_super_ticket():
    def ticket(order, value, sparsity):
        recipe = {"search": {"method": "importance", "order": order}}
        return cell(order, {"validation": value, "test": value}, sparsity, recipe=recipe)

    found = result(
        cell("dense", {"validation": 0.88, "test": 0.88}),
        ticket("winning", 0.9, 0.1), ticket("winning", 0.5, 0.7), ticket("random", 0.5, 0.7),
    )  # fmt: skip
    lines = printed(tables.phase_table(found, found.phases()[0]))
    assert holds(lines, "10 %", "95 %", "90.0 % ± 3.0", "I", "III", "parameters", "units")
    assert not any("losing" in line for line in lines)
    assert any(
        line.startswith("super ticket, chosen on validation: 10 % (95 % of parameters left)")
        for line in lines
    )


def test_a_transfer_of_all_of_glue():
    tasks = ["mnli", "qqp", "stsb", "wnli", "qnli", "mrpc", "rte", "sst2", "cola"]
    difference = [[0.01 * column - 0.05 for column in range(9)] for _ in tasks]
    matrix = Transfer(
        sources=tasks, targets=tasks, on="validation", metric="accuracy", difference=difference,
        at_least_own=dict.fromkeys(tasks, 3), compared=dict.fromkeys(tasks, 8),
    )  # fmt: skip
    lines = printed(tables.transfer_table(matrix))
    assert holds(lines, *tasks, "−5.0", "+3.0", "3 of 8")


def test_sharing_has_both_trainings_and_the_difference():
    def of(task, values):
        for variant, sparsity, value in zip((WITHOUT, WITH), (None, 0.2), values, strict=True):
            yield cell(variant, value, sparsity, task=task).model_copy(
                update={"axes": {"task": task, "seed": 1}}
            )

    found = result(*of("mnli", (0.8, 0.82)), *of("rte", (0.6, 0.58)))
    lines = printed(tables.share_table(found, "validation"))
    assert holds(
        lines, "without", "with", "tickets", "80.0 % ± 4.0", "+2.0 % ± 5.5", "−2.0 % ± 7.0", "average"
    )
    assert holds(lines, "90 %", "validation (accuracy)")
    assert not any(word in line for line in lines for word in ("random", "alone"))


@pytest.mark.parametrize(
    "names", [("sst2", "qqp", "mrpc", "stsb"), ("reviews", "reviews_newspaper", "b", "c")]
)
def test_controls_of_sharing_fit_the_terminal(names):
    values = {WITHOUT: (None, 0.8), WITH: (0.2, 0.82), RANDOM: (0.2, 0.81), ALONE: (None, 0.75)}
    cells = [
        cell(variant, value - 0.01 * seed, size, seed, task=task).model_copy(
            update={"axes": {"task": task, "seed": seed}}
        )
        for task in names
        for seed in (1, 2, 3)
        for variant, (size, value) in values.items()
    ]
    lines = printed(tables.share_table(result(*cells), "validation"))
    assert holds(
        lines, "alone", "with random", "with −", "73.0 % ± 1.0", "79.0 % ± 1.0", "+1.0 % ± 0.0", "90 %"
    )
    assert sum("task " in line for line in lines) == 2, "scores above, differences below"
    assert holds(lines, "random tickets: as many units of each kind", "single fine-tuning")


def test_a_mask_and_the_overlap_of_masks():
    masks = {f"/data/runs/some-long-name/tickets/{name}/mask.safetensors": Mask.full(Units.of(tiny("bert"), "weight"))
             for name in ("imp_sparsity-0.5_seed-1", "imp_sparsity-0.5_seed-2")}  # fmt: skip
    lines = printed(tables.overlap_table(Comparison(masks)))
    assert holds(lines, "imp_sparsity-0.5_seed-1/mask.safetensors", "100 %")
    assert holds(printed(tables.mask_table("imp", next(iter(masks.values())))), "query", "0 %", "layer")


def test_scores_sizes_and_attacks():
    scores = {
        "validation": {"accuracy": score(0.8)},
        "a/very/long/path/to/a/task.yaml": {"accuracy": score(0.7)},
    }
    assert holds(printed(tables.score_table("m", scores)), "0.8000", "a/very/long/path/to/a/task.yaml")
    rows = [
        Row(what="parameters", before=22_700_000, after=11_350_000),
        Row(what="x", before=1, after=2, unit="B"),
    ]
    assert holds(printed(tables.size_table("t", rows)), "22.7 M", "2.00 ×", "0.50 ×")
    timed = Speedup(ratio=1.5, low=1.4, high=1.6, busy="load 7 on 2 cores")
    rows = [Row(what="time of a batch of 1", before=0.01, after=0.006, unit="s", speedup=timed)]
    lines = printed(tables.size_table("t", rows))
    assert holds(lines, "1.50 × (1.40–1.60)", "10.0 ms", "time of a batch of 1: load 7 on 2 cores")
    done = Export(
        path=Path("m.onnx"), bytes=90_900_000, shapes=[(1, 8)], max_difference=1e-6, metric="accuracy", score=0.82,
        texts="64 texts of reviews/validation", speedup={1: timed, 32: timed},
        int8=Int8(path=Path("m.int8.onnx"), bytes=23_000_000, max_difference=0.2, agreement=0.98, score=0.81,
                  speedup={1: timed, 32: timed}),
    )  # fmt: skip
    assert holds(
        printed(tables.export_table(done)), "90,900,000", "98.0 %", "82.0 %", "1.50 (1.40–1.60)", "int8"
    )
    assert holds(printed(tables.export_table(done)), "int8, batch 32: load 7 on 2 cores")
    example = Example(0, ("a lovely film",), {1: "nice"}, 1, 1, 0, 0.1, 0.8, 42, "Successful", 0.9)
    report = AttackReport("textfooler", {}, [example], ["text"], ["bad", "good"], seed=0, query_budget=None)
    lines = printed(tables.attack_table("m", report))
    assert holds(lines, "accuracy under attack", "42.0", "changed words")
    assert holds(lines, "if 1 / 2 / 3 / 5 words may change", "0.0 / 0.0 / 0.0 / 0.0 %")
    assert lines[1].startswith("examples")  # no empty heading and no rule below the title


def test_a_correlation_of_an_export_is_no_percentage():
    done = Export(
        path=Path("m.onnx"), bytes=90_900_000, shapes=[(1, 8)], max_difference=1e-6, metric="pearson", score=-0.347,
        texts="64 texts", speedup={},
    )  # fmt: skip
    assert holds(printed(tables.export_table(done)), "−0.347")


def test_seeds_of_some_rows_only_are_said_to_be_so():
    cells = [*(cell("dense", 0.8 + 0.01 * seed, None, seed) for seed in range(3)), cell("imp", 0.7, 0.5)]
    lines = printed(tables.result_table(result(*cells)))
    assert "accuracy, mean ± standard deviation over up to 3 seeds; ± standard error where" in lines
    assert "there is one seed" in lines


def test_a_path_that_leaves_no_room_is_wrapped_at_its_joints():
    scores = {
        "a/very/long/path/to/a/folder/of/mine/task-of-my-own.yaml": {"accuracy/entailment": score(0.7)},
        **{f"split {number}": {"accuracy": score(0.8)} for number in range(5)},
    }
    lines = printed(tables.score_table("m", scores), width=60)
    assert holds(lines, "task-of-my-own.yaml", "0.7000", "0.0458", "100")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_caption_keeps_numbers_with_their_signs(width):
    for start in range(20):
        text = f"{'x' * start} the score is 88.0 % ± 3.2 on test, where 95 % of parameters are left"
        lines = printed(Grid("", [Column("row", ["a"])], [Column("score", ["b"])], [text]), width)
        assert " ".join(" ".join(lines[2:]).split()).endswith(" ".join(text.split()))
        assert any("88.0 % ± 3.2" in line for line in lines)
        assert any("95 %" in line for line in lines)


def test_names_are_wrapped_where_that_makes_for_fewer_tables():
    name = "iterative magnitude pruning with rewinding"
    cells = [
        judged(name, 0.8, 0.7, 0.4, 0.5, 1.4),
        *(judged(f"v{n}", 0.7, 0.6, 0.3, 0.5, 1.3) for n in range(5)),
    ]
    lines = printed(tables.result_table(result(*cells)))
    assert sum("variant" in line for line in lines) == 4
    assert holds(lines, "80.0 % ± 2.3", "70.0 % ± 2.6", "40.0 % ± 4.9", "1.40 (1.35–1.45)")


def test_doubts_stand_below_the_tables_of_sharing_and_of_a_compression():
    known = {"validation": 0.5}
    shared = result(
        *(
            cell(variant, 0.5, size, constants=known).model_copy(update={"axes": {"task": "rte", "seed": 1}})
            for variant, size in ((WITHOUT, None), (WITH, 0.2))
        )
    )
    pressed = result(cell("original", 0.5, constants=known), cell("ticket", 0.5, 0.5, constants=known))
    compression = Compression(pressed, Path("m"), 1.0, None, "")
    for table in (tables.share_table(shared, "validation"), tables.compression_table(compression)):
        assert "has not learned the task" in " ".join(printed(table))


def test_a_result_without_scores_has_a_table_too():
    bare = result(*(cell(variant, {}, size) for variant, size in (("dense", None), ("imp", 0.5))))
    stream = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "out", Console(file=stream, width=80))
        show_tables(console.Screen(), bare)
    assert "imp" in stream.getvalue()
    assert "matches" not in stream.getvalue()


def test_an_uncertain_speed_up_of_a_compression_is_marked_and_explained():
    for busy, marked in ((None, 0), ("load 7 on 2 cores", 3)):  # two batch sizes and the legend
        dense, ticket = quickstart().cells
        speedup = {
            size: ratio.model_copy(update={"busy": busy}) for size, ratio in ticket.measured.speedup.items()
        }
        timed = ticket.model_copy(
            update={"measured": ticket.measured.model_copy(update={"speedup": speedup})}
        )
        done = Compression(result(dense, timed), Path("m"), 1.0, None, "")
        lines = printed(tables.compression_table(done))
        assert "".join(lines).count("*") == marked
        assert any(line.startswith("* uncertain: the machine was busy") for line in lines) == bool(marked)


def test_a_perplexity_of_a_destroyed_model_has_four_digits():
    scores = {"wikitext2": {"perplexity": Score(1.23456e200, 1e190, 10, "delta method")}}
    assert holds(printed(tables.score_table("m", scores)), "1.235e+200", "1e+190", "perplexity")


@pytest.mark.parametrize("width", range(50, 90, 3))
def test_sentences_below_a_table_keep_numbers_with_their_signs(monkeypatch, width):
    verdict = "The ticket: 1.85 times as fast, accuracy 83.6 % against 84.6 % (95 %: −3.0 to +1.0), 2.0 % ± 1.1 lost."
    note = "split: 70 % train, 10 % validation, 20 % test of tickets-of-the-year.csv, as it was read"
    done = Compression(quickstart(), Path("model"), 1.0, None, verdict, (note,))
    written = StringIO()
    monkeypatch.setattr(console, "out", Console(width=width, file=written))
    show_notes(console.Screen(), done.notes)
    show_compression(console.Screen(), done)
    show_tables(console.Screen(), done.result)
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    assert verdict in " ".join(lines)
    assert note in " ".join(lines)
    assert "robust ticket: matches the dense model on test up to 41.7 % sparsity" in " ".join(lines)
    broken = [line for line in lines if line.startswith(("%", "±", "×")) or line.endswith("±")]
    assert broken == ["± is half of the 95 % interval"]
