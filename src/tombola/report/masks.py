"""A page of heat maps: the sparsity of each mask, and the overlap of masks."""

from pathlib import Path

from tombola.report.maps import mask_sections
from tombola.report.page import render
from tombola.tickets.comparison import Comparison


def write_masks(compared: Comparison, path: Path) -> Path:
    """Write the page."""
    return render(path, "Masks", ", ".join(compared.masks), mask_sections(compared.masks, {}))
