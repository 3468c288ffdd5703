import sys

import pytest

from tombola.foundations.lazy import postponed


@pytest.fixture
def heavy(tmp_path, monkeypatch):
    """A module that notes when it is loaded, and one that imports it."""
    (tmp_path / "heavy_one.py").write_text("import sys\nsys.loads.append(1)\nvalue = 7\n")
    (tmp_path / "its_user.py").write_text("import heavy_one\n\ndef use():\n    return heavy_one.value\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "loads", [], raising=False)
    yield sys.loads
    for name in ("heavy_one", "its_user"):
        sys.modules.pop(name, None)


def test_a_postponed_module_is_loaded_when_it_is_used(heavy):
    with postponed("heavy_one"):
        import its_user
    assert heavy == []
    assert "heavy_one" not in sys.modules
    assert its_user.use() == 7
    import heavy_one

    assert heavy == [1]
    assert heavy_one.value == its_user.use() == 7


def test_a_postponed_module_that_is_used_at_once_is_loaded_once(heavy):
    with postponed("heavy_one"):
        import its_user

        assert its_user.use() == 7
        from heavy_one import value
    assert (heavy, value) == ([1], 7)
    assert "heavy_one" in sys.modules


def test_what_is_loaded_or_not_installed_is_left_alone(heavy):
    import heavy_one

    with postponed("heavy_one"), postponed("no_such_module_anywhere"):
        assert sys.modules["heavy_one"] is heavy_one
        with pytest.raises(ModuleNotFoundError):
            import no_such_module_anywhere  # noqa: F401
