"""The recipes that come with the package, by name. (Light: the shell asks for them at every press of the tab key.)"""

from pathlib import Path

RECIPES = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """`quickstart`, `bert_tickets/quick` and so on."""
    return sorted(str(path.relative_to(RECIPES).with_suffix("")) for path in RECIPES.rglob("*.yaml"))
