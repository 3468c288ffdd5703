"""Registries: the only list of their kind, filled by their own modules and by other people's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tombola.errors import PluginError, UnknownName
from tombola.foundations.registry import Registry, is_builtin


def test_names_are_sorted_and_found() -> None:
    numbers: Registry[int] = Registry("number")
    numbers("two")(2)
    numbers("one")(1)
    assert list(numbers) == ["one", "two"]
    assert numbers.items() == [("one", 1), ("two", 2)]
    assert (numbers["two"], len(numbers), "three" in numbers) == (2, 2, False)


def test_an_unknown_name_offers_the_nearest() -> None:
    numbers: Registry[int] = Registry("number")
    numbers("seven")(7)
    with pytest.raises(UnknownName, match=r"unknown number 'sevn'. Did you mean 'seven'\?"):
        numbers["sevn"]
    with pytest.raises(UnknownName):
        numbers[["a", "list"]]


def test_a_name_is_registered_once() -> None:
    numbers: Registry[int] = Registry("number")
    numbers("one")(1)
    with pytest.raises(PluginError, match="number 'one' already exists"):
        numbers("one")(2)


def test_modules_are_imported_when_the_registry_is_first_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_numbers.py").write_text("import lazy_list\nlazy_list.numbers('nine')(9)\n")
    (tmp_path / "lazy_list.py").write_text(
        "from tombola.foundations.registry import Registry\nnumbers = Registry('number', ['lazy_numbers'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import lazy_list

    assert "lazy_numbers" not in sys.modules
    assert lazy_list.numbers["nine"] == 9
    assert "lazy_numbers" in sys.modules


def test_it_knows_who_registered_what() -> None:
    functions: Registry[object] = Registry("function")

    @functions("mine")
    def mine() -> None:
        """Ours."""

    assert Registry.home_of(mine) == __name__
    assert Registry.home_of(print) is None
    assert not is_builtin(__name__)
    assert is_builtin("tombola.search.random")
    assert not is_builtin("tombola_plugin_x")
    Registry.forget(__name__)
    assert "mine" not in functions
    assert Registry.home_of(mine) is None


def test_the_package_alone_extends_nothing() -> None:
    """In a process of its own: what other tests register would count."""
    code = "import tombola.pipeline.planner as _\nfrom tombola.foundations.registry import Registry\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(Registry.is_extended())"], capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr
