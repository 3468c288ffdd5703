"""Several folders on one page: each is there once, under a name of its own."""

import shutil

from tests.report.rich import ATTACK, keep_attack
from tests.results.builder import cell, result
from tombola.report.gathering import combine, gather


def test_attacks_in_folders_of_one_name_are_all_shown(tmp_path):
    keep_attack(tmp_path)
    folders = [tmp_path / model / "sst2" for model in ("dense", "ticket")]
    for folder in folders:
        shutil.copytree(tmp_path / ATTACK, folder)
    assert list(gather(folders).attacks) == ["dense/sst2", "ticket/sst2"]
    assert list(gather(folders[:1]).attacks) == ["sst2"]


def test_a_folder_that_is_named_twice_counts_once(tmp_path):
    result(cell("imp", 0.8, 0.5), folder=tmp_path / "run").save()
    (found,) = gather([tmp_path / "run", tmp_path / "run" / ".." / "run"]).results
    assert combine([found]) is found
