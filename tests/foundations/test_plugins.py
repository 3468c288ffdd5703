"""Plugins: where they are found, what they change, what is forgotten, and who may never load one."""

import json
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import tombola
from tests.pipeline.running import plans
from tests.world import World
from tombola.errors import PluginError
from tombola.foundations import plugins
from tombola.foundations.plugins import load_plugins, loaded_plugins
from tombola.pipeline.engines import Local
from tombola.pipeline.planner import plan_cell
from tombola.pipeline.study import plan_study, read_study
from tombola.pipeline.watching import Watcher
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.share import check_share
from tombola.search import searches
from tombola.store.store import Store

SOURCE = '''
from typing import Literal
from tombola.masks import Scores
from tombola.search import ScorerSettings, scorer

class {name}(ScorerSettings):
    """Settings."""
    method: Literal["{method}"] = "{method}"

@scorer({name})
def score(settings, model, units, evidence):
    """{about}"""
    return Scores.magnitude(units, model)
'''
SEARCH = {"search": {"method": "own"}, "draw": {"sparsity": 0.5}, "retrain": None}


def write(path: Path, method: str = "own", about: str = "A score.") -> str:
    path.write_text(SOURCE.format(name=method.title().replace("_", ""), method=method, about=about))
    return str(path)


def keys(world: World, **changes: Any) -> dict[str, str]:
    (plan,) = plans(world, **changes)
    return {stage.kind: stage.key for stage in plan.stages()}


def test_a_recipe_names_plugins_beside_itself_or_in_the_current_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "recipes" / "beside.py", "beside")
    write(tmp_path / "elsewhere" / "here.py", "here")
    recipe = tmp_path / "recipes" / "r.yaml"
    recipe.write_text(
        json.dumps(world.recipe(plugins=["beside.py", "here.py"], search={"method": ["beside", "here"]}))
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    raw = load_recipe(Path("../recipes/r.yaml"))
    assert raw["plugins"] == ["../recipes/beside.py", "here.py"]
    assert [plugin.name for plugin in loaded_plugins()] == ["beside.py", "here.py"]
    assert load_recipe(raw, ["seed=2"])["plugins"] == raw["plugins"]
    cells = expand({**raw, "search": {"method": "beside"}})
    assert cells[0].raw()["plugins"] == raw["plugins"]


def test_a_missing_plugin_is_a_sentence(world: World, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"plugin nowhere\.py: there is no such file"):
        load_recipe(world.recipe(plugins=["nowhere.py"]))
    with pytest.raises(PluginError, match="neither a Python file nor an importable module"):
        load_plugins(["no_such_module"])
    (tmp_path / "bad.py").write_text("1 / 0\n")
    with pytest.raises(PluginError, match=r"plugin bad\.py: ZeroDivisionError: division by zero"):
        load_plugins([str(tmp_path / "bad.py")])
    with pytest.raises(tombola.TombolaError, match="plugins: takes a list of Python files"):
        load_recipe(world.recipe(plugins="one.py"))


def test_a_plugin_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(SOURCE.format(name="Half", method="half", about="x") + "\nraise ValueError('late')\n")
    with pytest.raises(PluginError, match="late"):
        load_plugins([str(path)])
    assert "half" not in searches
    assert loaded_plugins() == []
    assert not [name for name in sys.modules if name.startswith("tombola_plugin_half")]


def test_a_name_of_the_package_cannot_be_taken(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"plugin taken\.py: search method 'random' already exists"):
        load_plugins([write(tmp_path / "taken.py", "random")])


def test_a_plugin_is_loaded_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", about="First.")
    (first,) = load_plugins([path])
    assert load_plugins([path]) == [first]
    assert searches["own"].about == "First."
    (second,) = load_plugins([write(tmp_path / "mine.py", about="Second.")])
    assert searches["own"].about == "Second."
    assert loaded_plugins() == [second]
    (tmp_path / "other").mkdir()
    load_plugins([write(tmp_path / "other" / "mine.py", "other")])
    assert "own" in searches
    assert "other" in searches


def test_its_content_names_the_stages_that_use_it_and_no_others(world: World, tmp_path: Path) -> None:
    finetuned = {**SEARCH, "search": {"method": "own", "start": "finetuned"}}
    load_plugins([write(tmp_path / "mine.py", about="First.")])
    first = keys(world, **finetuned)
    load_plugins([write(tmp_path / "mine.py", about="Second.")])
    second = keys(world, **finetuned)
    assert first["train"] == second["train"]
    assert first["draw"] != second["draw"]
    assert first["evaluate"] != second["evaluate"]  # it is of what the draw gave
    load_plugins([write(tmp_path / "mine.py", about="First.")])
    assert keys(world, **finetuned) == first


def test_unused_plugins_and_their_order_change_no_key(world: World, tmp_path: Path) -> None:
    recipe = {
        "search": {"method": "learned", "train": {"steps": 1}},
        "attack": {"n": 3},
        "draw": {"sparsity": 0.5},
    }
    before = keys(world, **recipe)
    one, two = write(tmp_path / "one.py", "one"), write(tmp_path / "two.py", "two")
    load_plugins([one, two])
    assert keys(world, **recipe) == before
    used = keys(world, **{**SEARCH, "search": {"method": "two"}})
    for plugin in loaded_plugins():
        plugins.forget(plugin)
    load_plugins([two, one])
    assert keys(world, **recipe) == before
    assert keys(world, **{**SEARCH, "search": {"method": "two"}}) == used


def test_a_package_is_a_plugin_with_all_of_its_modules(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_package"
    package.mkdir()
    write(package / "methods.py", "packaged")
    (package / "__init__.py").write_text("import own_package.methods\n")
    (package / "numbers.py").write_text("ONE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (plugin,) = load_plugins(["own_package"])
    (plan,) = plans(world, **{**SEARCH, "search": {"method": "packaged"}})
    assert plan.mask.identity()["plugins"] == [plugin.fingerprint]
    plugins.Registry.forget("own_package.methods")


def test_a_module_that_a_plugin_imports_from_its_package_counts_with_the_whole_package(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    write(package / "scores.py", "parted")
    (package / "entry.py").write_text("import own_parts.scores\n")
    (package / "numbers.py").write_text("ONE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (plugin,) = load_plugins(["own_parts.entry"])
    (plan,) = plans(world, **{**SEARCH, "search": {"method": "parted"}})
    assert plan.mask.identity()["plugins"] == [plugin.fingerprint]
    plugins.Registry.forget("own_parts.scores")


def test_installed_packages_offer_plugins_when_a_recipe_is_read(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "offered_methods.py", "offered")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("offered", "offered_methods", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == plugins.GROUP else [])
    plugins.load_installed_plugins.cache_clear()
    try:
        assert "offered" not in searches
        load_recipe(world.recipe())
        assert "offered" in searches
    finally:
        plugins.load_installed_plugins.cache_clear()


def test_studies_and_recipes_for_sharing_name_plugins_too(world: World, tmp_path: Path) -> None:
    write(tmp_path / "mine.py")
    (tmp_path / "r.yaml").write_text(json.dumps(world.recipe(**SEARCH)))
    (tmp_path / "study.yaml").write_text(json.dumps({"plugins": ["mine.py"], "recipes": ["r.yaml"]}))
    study = read_study(tmp_path / "study.yaml")
    assert study.plugins == (str(tmp_path / "mine.py"),)
    assert [cell.mask.search.method for cell in plan_study(study).cells] == ["own"]
    for plugin in loaded_plugins():
        plugins.forget(plugin)
    raw = load_recipe(
        {
            "model": str(world.model),
            "plugins": [str(tmp_path / "mine.py")],
            "tasks": ["reviews", "reviews_tweets"],
            "search": {"method": "own", "units": "head"},
        }
    )
    assert check_share(raw).for_task("reviews", 1).recipe.search.method == "own"


def test_code_that_no_plugin_brought_counts_by_its_file(world: World) -> None:
    namespace = sys.modules[__name__].__dict__
    exec(compile(SOURCE.format(name="Here", method="here", about="x"), __file__, "exec"), namespace)
    try:
        (plan,) = plans(world, **{**SEARCH, "search": {"method": "here"}})
        ((_, name),) = plugins.plugins_of(plan.mask.search).items()
        assert name == __name__
        assert len(plan.mask.identity()["plugins"]) == 1
    finally:
        plugins.Registry.forget(__name__)


def test_code_that_is_in_no_file_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("interactive_session")
    monkeypatch.setitem(sys.modules, "interactive_session", module)
    exec(SOURCE.format(name="Typed", method="typed", about="x"), module.__dict__)
    try:
        with pytest.raises(PluginError, match="whose code is not in a file"):
            plans(world, **{**SEARCH, "search": {"method": "typed"}})
    finally:
        plugins.Registry.forget("interactive_session")


@pytest.mark.thorough
def test_worker_processes_load_plugins(world: World, tmp_path: Path) -> None:
    raw = load_recipe(world.recipe(plugins=[write(tmp_path / "mine.py")], **SEARCH))
    (cell,) = expand(raw)
    plan = plan_cell(cell)
    (tmp_path / "mine.py").unlink()  # workers on other machines do not have it either
    store = Store(tmp_path / "store")
    outcome = Local(workers=2).run(plan.mask.with_inputs(), store, Watcher())
    assert outcome.failures == []
    assert store.read(plan.mask).sparsity == pytest.approx(0.5, abs=1e-3)


@pytest.mark.slow
def test_ray_workers_load_plugins(world: World, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from tombola.pipeline.engines import Ray

    raw = load_recipe(world.recipe(plugins=[write(tmp_path / "mine.py")], **SEARCH))
    plan = plan_cell(expand(raw)[0])
    store = Store(tmp_path / "store")
    outcome = Ray(workers=1).run(plan.mask.with_inputs(), store, Watcher())
    assert outcome.failures == []
    assert store.read(plan.mask).sparsity == pytest.approx(0.5, abs=1e-3)


def test_tickets_never_load_code() -> None:
    package = Path(tombola.__file__).parent
    loading = re.compile(r"\b(load_plugins|load_installed_plugins|adopt|load_recipe|plugins)\b")
    for room in ("tickets", "masks", "models", "shrink", "evaluation", "report"):
        for file in (package / room).rglob("*.py"):
            assert not loading.search(file.read_text()), file
