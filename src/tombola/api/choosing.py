"""Choose a compression's speed-up within an accepted loss, and its epochs within a time limit."""

from __future__ import annotations

from tombola.pipeline.costs import estimate
from tombola.pipeline.plan import Plan
from tombola.pipeline.stages.train import Train
from tombola.recipe.reading import Raw
from tombola.recipe.sections import AttackSettings, EvaluateSettings
from tombola.store.store import Store
from tombola.tasks import HOLDOUT, Task
from tombola.tasks.targets import all_targets, find_target

SPEEDUPS = (1.5, 2.0, 3.0, 4.0)
"""The speed-ups to try if none is given."""
SHARE = 0.1
"""Share of the training data to hold out for the choice if the task has no split for it."""
SHORTEST, LONGEST = 1.0, 30.0  # the fewest and most epochs that a time limit gives


def is_open(raw: Raw) -> bool:
    """Return whether the recipe of a compression leaves the speed-up open."""
    return "speedup" in raw["draw"] and raw["draw"]["speedup"] is None


def with_any_speedup(raw: Raw) -> Raw:
    """Return the recipe with some speed-up in place of an open one, for plans and checks that need a number."""
    return {**raw, "draw": {**raw["draw"], "speedup": 2.0}} if is_open(raw) else raw


def with_choice_data(raw: Raw) -> tuple[Raw, str | None]:
    """Return the recipe with a split for the choice, neither trained on nor reported, and the name of that split.

    This is the validation split, unless its scores are reported. Otherwise a share of the training data is held out
    from every training, so that the final ticket is the very one that was chosen. If the recipe sets the speed-up,
    nothing is changed or chosen.
    """
    if not is_open(raw):
        return raw, None
    task = Task.named(raw["task"])
    reported = task.default_split == "validation" or "validation" in _reported(raw)
    if "validation" in task.split_names() and not reported:
        return raw, "validation"
    data = dict(raw.get("data") or {})
    if HOLDOUT not in task.split_names() and data.get("holdout") is None:
        data["holdout"] = SHARE
    return {**raw, "data": data}, HOLDOUT


def _reported(raw: Raw) -> set[str]:
    """Return the splits of the recipe's task whose scores are reported, also with changed texts."""
    on = _evaluated(raw)
    if raw.get("attack"):
        on.append(raw["attack"].get("on", AttackSettings.model_fields["on"].default))
    targets = [find_target(target, raw["task"]) for target in all_targets(tuple(on), raw["task"])]
    return {split.partition("+")[0] for task, split in targets if task == raw["task"]}


def _evaluated(raw: Raw) -> list[str]:
    return list((raw.get("evaluate") or {}).get("on", EvaluateSettings().on))


def choice_recipe(raw: Raw, on: str) -> Raw:
    """Return the recipe that trains a ticket for every speed-up and scores them and the original on split `on`.

    The recipe's first data set stays: models are timed on its texts, so the chosen ticket is the very one that the
    recipe trains for its speed-up.
    """
    return {
        **only_ticket(raw),
        "name": f"{raw['name']}-choice",
        "evaluate": {"on": list(dict.fromkeys([*_evaluated(raw)[:1], on]))},
        "draw": {**raw["draw"], "speedup": list(SPEEDUPS)},
        "variants": {"original": {"search": None, "defend": []}, "ticket": {}},
    }


def only_ticket(raw: Raw) -> Raw:
    """Return the recipe that trains the ticket and nothing else."""
    others = ("attack", "measure", "runtime", "variants")
    return with_any_speedup({name: value for name, value in raw.items() if name not in others})


def in_time(raw: Raw, plan: Plan, store: Store, seconds: float) -> tuple[Raw, tuple[str, ...]]:
    """Return the recipe with as many epochs of retraining as the time allows, and notes for the user.

    Args:
        raw: The recipe of a compression.
        plan: The plan of its ticket alone.
        store: The store of finished stages.
        seconds: The time limit; if the speed-up is open, for the tickets of all speed-ups together.
    """
    epochs = raw["retrain"]["epochs"]
    train = next(cost for cost in estimate(plan, store, afresh=True) if cost.kind == Train.kind)
    assert train.seconds  # the training of the ticket is one of them, and has steps
    tickets = len(SPEEDUPS) if is_open(raw) else 1
    an_epoch = tickets * train.seconds / float(epochs)
    chosen = min(LONGEST, max(SHORTEST, int(seconds / an_epoch)))
    trained = "the ticket" if tickets == 1 else f"each of the {tickets} tickets"
    note = f"epochs of training {trained}: {chosen:g}, about {chosen * an_epoch / 60:.1f} min"
    note += " in total" if tickets > 1 else ""
    if an_epoch > seconds:
        note += f", more than the {seconds / 60:.1f} min of --time: a ticket needs at least one epoch"
    if train.without_attacks:
        note += ", not counting attacks during training"
    return {**raw, "retrain": {**raw["retrain"], "epochs": chosen}}, (note,)
