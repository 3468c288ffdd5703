from pathlib import Path

import pytest

from tests.tickets.test_shrinking import known_ticket
from tests.world import World
from tombola.tickets.exporting import export_folder


@pytest.mark.slow
def test_a_ticket_is_exported_and_judged_on_its_own_task(world: World, tmp_path: Path) -> None:
    ticket = known_ticket(world, tmp_path / "ticket")
    done = export_folder(ticket, tmp_path / "model.onnx", int8=True)
    assert done.texts == "48 texts of tiny/validation, 6 tokens on average"
    assert done.int8 is not None
    assert (done.metric, set(done.speedup), set(done.int8.speedup)) == ("accuracy", {1, 32}, {1, 32})
    assert done.score == pytest.approx(done.int8.score, abs=0.2)
    assert done.int8.agreement == pytest.approx(1, abs=0.2)
