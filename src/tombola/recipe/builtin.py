"""The built-in recipes by name. Imports stay light: shell completion runs this at every press of the tab key."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tombola.errors import RecipeError

RECIPES = Path(__file__).parents[1] / "recipes"


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes: `quickstart`, `bert_tickets/quick` and so on."""
    return sorted(str(path.relative_to(RECIPES).with_suffix("")) for path in RECIPES.rglob("*.yaml"))


def find_recipe(recipe: Path | str | Mapping[str, Any]) -> Path | Mapping[str, Any]:
    """Find a recipe by path, or a built-in one by name (`bert_tickets/quick`)."""
    if isinstance(recipe, Mapping):
        return recipe
    path = Path(recipe).expanduser()
    builtin = RECIPES / f"{recipe}.yaml"
    if not path.is_file() and not builtin.is_file() and path.suffix not in (".yaml", ".yml"):
        near = get_close_matches(str(recipe), recipe_names(), n=1)
        offer = f"Did you mean {near[0]!r}?" if near else "`tombola list recipes` shows the built-in recipes."
        raise RecipeError(f"there is no recipe file {recipe} and no built-in recipe of that name. {offer}")
    return builtin if not path.is_file() and builtin.is_file() else path
