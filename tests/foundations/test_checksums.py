"""Checksums notice every change, and files are written whole or not at all."""

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.errors import DamagedArtefact
from tombola.foundations.checksums import (
    check_checksums,
    is_intact,
    sealed,
    write_checksums,
    write_whole,
)

CONTENT = {"name": "a", "checksum of": "b", "numbers": [1.5, 2], "deep": {"checksum": "ffff"}}


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_sealed_text_notices_every_flipped_bit(place, bit):
    whole = sealed(CONTENT).encode()
    assert is_intact(whole, required=True)
    assert json.loads(whole).items() >= CONTENT.items()
    damaged = bytearray(whole)
    damaged[place % len(whole)] ^= 1 << bit
    assert not is_intact(bytes(damaged), required=True)


def test_a_text_without_a_checksum_is_taken_unless_one_is_required():
    assert is_intact(b'{"a": 1}')
    assert not is_intact(b'{"a": 1}', required=True)


def test_a_folder_is_checked_file_by_file(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a", "deep/b", "README.md"):
        (tmp_path / name).write_text(name)
    write_checksums(tmp_path, without=("README.md",))
    (tmp_path / "README.md").write_text("changed")
    (tmp_path / "new").write_text("added")
    check_checksums(tmp_path, "get it again")
    (tmp_path / "deep" / "b").write_text("c")
    with pytest.raises(DamagedArtefact, match=r"deep/b .*get it again"):
        check_checksums(tmp_path, "get it again")
    (tmp_path / "deep" / "b").unlink()
    with pytest.raises(DamagedArtefact, match="deep/b"):
        check_checksums(tmp_path, "get it again")
    for nonsense in ("", "[]", sealed({"files": 1}), sealed({"files": {"../x": ""}}), '{"files": {}}'):
        (tmp_path / "checksums.json").write_text(nonsense)
        with pytest.raises(Exception, match=r"checksums\.json|not the name of a file"):
            check_checksums(tmp_path, "get it again")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    write_whole(file, "old")

    def full(self, text, **options):
        self.touch()
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, "new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_read_only_disk_is_reported_for_the_file_itself(tmp_path, monkeypatch):
    def refuse(self, *_, **options):
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_whole(tmp_path / "results.json", "new")
    assert caught.value.filename == str(tmp_path / "results.json")


def test_what_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (Path(), tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder; name a file") as caught:
            write_whole(place, "new")
        assert caught.value.filename == str(place)
    with pytest.raises(OSError, match="name too long") as caught:
        write_whole(tmp_path / ("long" * 100), "new")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / ("long" * 100)), None)


def _write(file, text):
    for _ in range(50):
        write_whole(file, text)


def test_many_writers_of_one_file_do_not_meet(tmp_path):
    context = multiprocessing.get_context("fork")
    texts = [str(number) * 50_000 for number in range(8)]
    writers = [context.Process(target=_write, args=(tmp_path / "x", text)) for text in texts]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0] * 8
    assert (tmp_path / "x").read_text() in texts
    assert len(list(tmp_path.iterdir())) == 1
