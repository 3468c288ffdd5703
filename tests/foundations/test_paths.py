"""Names from outside become path parts that stay where they belong and never meet."""

import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.errors import TombolaError
from tombola.foundations.paths import LONGEST, inside, path_part, replacing, temporary_beside, twins

HOSTILE = [
    "..",
    ".",
    "",
    "/home/user",
    "a/b",
    "a\\b",
    "a\0b",
    "~",
    "CON",
    "nul.txt",
    "a.",
    "a ",
    ".git",
    "x" * 500,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_becomes_one_harmless_part(name, tmp_path):
    part = path_part(name)
    folder = tmp_path / part
    folder.mkdir()
    assert folder.resolve().parent == tmp_path.resolve()
    assert not part.startswith((".", "~"))
    assert len(part.encode()) <= LONGEST


@given(st.lists(st.text(max_size=200), unique=True, max_size=30))
def test_different_names_have_different_parts(names):
    assert len({path_part(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["imp", "imp_sparsity-0.5_seed-1", "robust ticket", "a+b=c"])
def test_ordinary_names_stay_readable(name):
    assert path_part(name) == name


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "a\\..\\..\\x", "", ".", "./", "C:/x", "a\0"]
)
def test_a_name_that_leads_outside_is_refused(name, tmp_path):
    with pytest.raises(TombolaError, match="is not the name of a file below"):
        inside(tmp_path, name)


def test_names_that_differ_in_capitals_alone_are_found():
    assert twins(["imp", "omp", "IMP"]) == ("imp", "IMP")
    assert twins(["imp", "imp", "omp"]) is None
    assert twins(["é", "e\u0301", "a/b", "a-b"]) is None


def test_a_name_below_is_joined(tmp_path):
    assert inside(tmp_path, "a/b.json") == tmp_path / "a" / "b.json"


def test_nothing_is_replaced_that_was_not_written_here(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(TombolaError, match=r"was not written by tombola"), replacing(folder, "ticket.json"):
        pass
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_folder_of_ours_is_replaced_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "ticket"
    for text in ("first", "second"):
        with replacing(folder, "ticket.json") as new:
            (new / "ticket.json").write_text(text)
    assert (folder / "ticket.json").read_text() == "second"
    with pytest.raises(FileNotFoundError), replacing(folder, "ticket.json") as new:
        (new / "missing" / "ticket.json").write_text("half")
    assert (folder / "ticket.json").read_text() == "second"
    assert list(tmp_path.iterdir()) == [folder]


def _write(folder: str) -> None:
    for _ in range(20):
        with replacing(Path(folder), "ticket.json") as new:
            (new / "ticket.json").write_text("same")


def test_several_writers_of_one_folder_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(str(tmp_path / "ticket"),)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert (tmp_path / "ticket" / "ticket.json").read_text() == "same"
    assert [path.name for path in tmp_path.iterdir()] == ["ticket"]


def test_what_a_killed_process_left_beside_a_path_goes_with_the_next_write(tmp_path):
    dead = multiprocessing.get_context("fork").Process(
        target=lambda: (temporary_beside(tmp_path / "a").mkdir(), temporary_beside(tmp_path / "b").touch())
    )
    dead.start()
    dead.join()
    own = temporary_beside(tmp_path / "a")
    own.mkdir()
    assert temporary_beside(tmp_path / "a") != own
    assert own.is_dir(), "its writer is alive"
    assert len(list(tmp_path.iterdir())) == 2, "that of a is gone, that of b is not"


def test_what_another_container_writes_is_left_alone(tmp_path, monkeypatch):
    """It may have the same network address, and a process id that is free here."""
    with monkeypatch.context() as patch:
        patch.setattr("tombola.foundations.paths.gethostname", lambda: "another")
        patch.setattr("tombola.foundations.paths.os.getpid", lambda: 2**31)
        other = temporary_beside(tmp_path / "a")
    other.mkdir()
    temporary_beside(tmp_path / "a")
    assert other.is_dir()


def test_a_folder_stays_if_its_successor_cannot_take_its_place(tmp_path):
    folder = tmp_path / "ticket"
    with replacing(folder, "ticket.json") as new:
        (new / "ticket.json").write_text("first")
    with pytest.raises(FileNotFoundError), replacing(folder, "ticket.json") as new:
        new.rmdir()
    assert (folder / "ticket.json").read_text() == "first"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("letter", ["a", "\u5f71"])
def test_a_temporary_name_is_short_enough_beside_the_longest_name(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (250 // len(letter.encode())))
    temporary_beside(path).write_text("whole")
    path.touch()
