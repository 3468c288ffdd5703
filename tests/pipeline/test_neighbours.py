"""Every stage that looks words up in the bundled table of neighbours is named by the table's version."""

from typing import Any

import pytest

from tests.pipeline.running import stages
from tests.world import World
from tombola.attacks.resources import NEIGHBOURS, PROPOSALS, SWAP_TABLE

NEAR = {"of": [{"kind": "synonyms", "source": "neighbours"}]}
LEARNED: dict[str, Any] = {"method": "learned", "start": "pretrained", "weights": True}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("train", {"train": {"augment": NEAR}}),
        ("score", {"search": {"method": "importance", "inputs": "both", "augment": NEAR}}),
        ("score", {"train": {"augment": NEAR}, "search": {"method": "importance", "inputs": "augmented"}}),
        ("search", {"search": {**LEARNED, "train": {"augment": NEAR}}}),
        (
            "search",
            {"search": {**LEARNED, "train": {"adversary": {"kind": "attack", "recipe": "textfooler"}}}},
        ),
        ("train", {"train": {"adversary": {"kind": "swaps"}}}),
        ("search", {"search": {**LEARNED, "train": {"adversary": {"kind": "swaps"}}}}),
    ],
)
def test_a_new_table_names_the_stage_anew(world: World, kind: str, changes: dict[str, Any]) -> None:
    found = [stage for stage in stages(world, **changes) if stage.kind == kind]
    assert found
    assert all(stage.identity()["settings"]["neighbours"] == NEIGHBOURS for stage in found)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("train", {"train": {"adversary": {"kind": "swaps"}}}),
        ("search", {"search": {**LEARNED, "train": {"adversary": {"kind": "swaps"}}}}),
    ],
)
def test_other_swaps_name_the_stage_anew(world: World, kind: str, changes: dict[str, Any]) -> None:
    found = [stage for stage in stages(world, **changes) if stage.kind == kind]
    assert found
    assert all(stage.identity()["settings"]["swap_table"] == SWAP_TABLE for stage in found)


def test_only_attacks_with_a_masked_lm_are_named_by_the_version_of_its_proposals(world: World) -> None:
    attack = {"recipes": ["bert_attack", "deepwordbug"], "mlm": world.recipe()["model"]}
    with_lm, without = (stage for stage in stages(world, attack=attack) if stage.kind == "attack")
    assert with_lm.identity()["settings"]["proposals"] == PROPOSALS
    assert "proposals" not in without.identity()["settings"]


@pytest.mark.parametrize("search", [{"method": "importance"}, LEARNED])
def test_other_stages_do_not_depend_on_it(world: World, search: dict[str, Any]) -> None:
    for stage in stages(world, search=search):
        assert not {"neighbours", "swap_table"} & set(stage.identity()["settings"])
