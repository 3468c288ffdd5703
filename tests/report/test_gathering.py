"""Several folders on one page: each is there once, under a name of its own."""

import shutil

import pytest

from tests.report.rich import ATTACK, keep_attack, rich_result
from tests.results.builder import cell, result
from tombola.pipeline.sharing import WITH, WITHOUT
from tombola.report.gathering import combine, gather
from tombola.report.maps import masks
from tombola.report.sharing import sharing
from tombola.results.conclusion import conclude


def test_attacks_in_folders_of_one_name_are_all_shown(tmp_path):
    keep_attack(tmp_path)
    folders = [tmp_path / model / "sst2" for model in ("dense", "ticket")]
    for folder in folders:
        shutil.copytree(tmp_path / ATTACK, folder)
    assert list(gather(folders).attacks) == ["dense/sst2", "ticket/sst2"]
    assert list(gather(folders[:1]).attacks) == ["sst2"]


def test_a_folder_that_is_named_twice_counts_once(tmp_path):
    result(cell("imp", 0.8, 0.5), folder=tmp_path / "run").save()
    runs = gather([tmp_path / "run", tmp_path / "run" / ".." / "run"]).runs
    assert combine(runs) is runs["r"]
    assert len(gather([tmp_path / "run", tmp_path / "run" / "results.json"]).results) == 1


def test_results_of_one_name_in_one_folder_are_all_shown(tmp_path):
    for name, value in (("old", 0.7), ("results", 0.8)):
        result(cell("imp", value, 0.5), folder=tmp_path).save().rename(tmp_path / f"{name}.json")
    runs = gather([tmp_path / "old.json", tmp_path / "results.json"]).runs
    assert [run.cells[0].scores["validation"]["accuracy"].value for run in runs.values()] == [0.7, 0.8]
    assert len(combine(runs).cells) == 2


def _shared(folder, name, level, size):
    """The result of a sharing whose tickets gain two points."""
    made = [
        cell(variant, level + gain, sparsity, task=task).model_copy(
            update={"axes": {"task": task, "seed": 1}}
        )
        for task in ("mnli", "rte")
        for variant, sparsity, gain in ((WITHOUT, None, 0.0), (WITH, size, 0.02))
    ]
    result(*made, folder=folder / name, name=name).save()


def test_two_sharings_have_a_table_and_a_sentence_each(tmp_path):
    _shared(tmp_path, "small", 0.7, 0.2)
    _shared(tmp_path, "large", 0.8, 0.4)
    runs = gather([tmp_path / "small", tmp_path / "large"]).runs
    tables = sharing(runs).parts
    assert [table.name for table in tables] == ["small, validation", "large, validation"]
    shown = [[row.values[2].value for row in table.rows] for table in tables]
    assert shown == [pytest.approx([0.7] * 3), pytest.approx([0.8] * 3)]
    assert [table.rows[-1].values[-1] for table in tables] == pytest.approx([0.9, 0.8])
    told = conclude(combine(runs))
    assert "small: Sharing one encoder under tickets gives 72.0 %" in told
    assert "large: Sharing one encoder under tickets gives 82.0 %" in told


def test_the_masks_of_several_runs_are_compared(tmp_path, monkeypatch):
    for name in ("first", "second"):
        rich_result(tmp_path / name, tmp_path / "store").save()
    monkeypatch.chdir(tmp_path / "first")
    overlap, *_ = masks(combine(gather(["../first", "../second"]).runs))
    assert overlap.title == "Overlap"
