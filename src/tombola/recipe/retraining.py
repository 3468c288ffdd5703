"""Checks of a recipe's retraining against its search and its draw."""

from tombola.recipe.sections import DrawSettings, RetrainSettings
from tombola.search import SearchSettings


def check_control(search: SearchSettings, draw: DrawSettings, retrain: RetrainSettings | None) -> None:
    """Reject a control that cannot handle layers cut to sizes of their own, some perhaps without an FFN.

    Args:
        search: The recipe's `search`.
        draw: Its `draw`.
        retrain: Its `retrain`.
    """
    if retrain is None or retrain.control is None or not retrain.shrink:
        return
    if draw.layout == "uniform" or search.units == "layer":
        return
    kind, across = retrain.control.kind, getattr(retrain.control, "across", "matrices")
    matrices = kind in ("shuffle", "noise") and across == "matrices"
    if kind == "reinitialise" or across != "matrices" or (matrices and "ffn" in search.units):
        raise ValueError(
            f"retrain.control: {kind} needs layers of equal size, but retrain.shrink cuts each to "
            "a size of its own; leave out retrain.shrink, or set draw.layout: uniform"
        )


def check_rounds(search: SearchSettings, draw: DrawSettings, retrain: RetrainSettings | None) -> None:
    """Reject rounds of removal whose small models cannot be trained or scored.

    Args:
        search: The recipe's `search`.
        draw: Its `draw`, with more than one round.
        retrain: Its `retrain`.
    """
    if retrain is None or not retrain.shrink:
        raise ValueError("draw.rounds: trains a small model between rounds; set retrain.shrink: true")
    if draw.layout == "free" and "ffn" in search.units:
        raise ValueError(
            "draw.rounds: a layer without its FFN cannot be scored in the next round; use search.units: "
            f"{search.units.replace('ffn', 'neuron')}, or set draw.layout: uniform"
        )
    if search.method == "learned" or search.task is not None:
        raise ValueError("draw.rounds: needs a search that scores the units on the recipe's own task")
    if getattr(search, "start", None) == "random":
        raise ValueError(
            "search.start: random scores new weights, but draw.rounds scores those that each round has trained; "
            "remove one of them"
        )
    if retrain.start not in ("rewind", "last_round"):
        raise ValueError(
            "retrain.start: after draw.rounds, training continues with the small model of the last round; leave it out"
        )
