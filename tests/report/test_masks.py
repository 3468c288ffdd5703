"""Maps of masks on the page: which are shown, and which can be compared."""

import torch

from tests.report.test_page import section, shown
from tests.results.builder import cell
from tests.tiny import tiny
from tombola.masks import Scores, Units, draw


def with_masks(folder, masks):
    """Write a ticket for each mask; return a cell for each, on axes of its own."""
    for number, (axes, mask) in enumerate(masks):
        place = folder / "tickets" / str(number)
        place.mkdir(parents=True)
        mask.save(place / "mask.safetensors")
        ticket = cell("imp", 0.8, axes["draw.sparsity"], ticket=f"tickets/{number}")
        yield ticket.model_copy(update={"axes": {**axes, "seed": 1}})


def mask_of(kind, sparsity=0.5):
    units = Units.of(tiny(kind), "head")
    return draw(
        Scores(units, {name: torch.arange(group.count).float() for name, group in units.by_name.items()}),
        sparsity=sparsity,
    )


def test_masks_of_different_models_have_no_overlap_and_leave_the_page_whole(tmp_path):
    kinds = ("bert", "distilbert")
    cells = with_masks(tmp_path, [({"model": kind, "draw.sparsity": 0.5}, mask_of(kind)) for kind in kinds])
    overlap = section(shown(tmp_path, *cells), "Overlap")
    assert overlap["parts"][0]["values"] == [[1.0, None], [None, 1.0]]
    assert "different models" in overlap["note"]


def test_masks_of_nearly_equal_sparsity_are_all_shown_and_those_left_out_counted(tmp_path):
    mask, sparsities = mask_of("bert"), [0.975, 0.98, *(0.1 + number / 100 for number in range(16))]
    cells = with_masks(tmp_path, [({"draw.sparsity": sparsity}, mask) for sparsity in sparsities])
    maps = section(shown(tmp_path, *cells), "Sparsity by layer")
    assert [one["name"] for one in maps["parts"]][:2] == ["imp · 97.5 %", "imp · 98 %"]
    assert maps["remarks"] == ["2 more masks are not shown: see `tombola inspect`."]
