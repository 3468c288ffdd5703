"""Arguments of the Python API: a single value where several are possible, and open tickets instead of their folders."""

import ast
import inspect
from pathlib import Path

import pytest
from pydantic import BaseModel

import tombola
from tests.world import World
from tombola import api
from tombola.attacks.base import Attack
from tombola.errors import TombolaError
from tombola.foundations.sequences import as_tuple
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.ray import Resources
from tombola.tickets.ticket import Ticket


@pytest.fixture(scope="module")
def ticket(world: World, tmp_path_factory: pytest.TempPathFactory) -> Ticket:
    folder = tmp_path_factory.mktemp("arguments")
    recipe = world.recipe(search={"method": "magnitude", "units": "head"}, draw={"sparsity": 0.5})
    result = tombola.run(recipe, "evaluate.on=[validation]", output=folder / "out", store=folder / "store")
    return Ticket.from_pretrained(result.folder / str(result.cells[0].ticket))


def test_a_string_is_one_value() -> None:
    assert as_tuple("test") == ("test",)
    assert as_tuple(["a", "b"]) == as_tuple(one for one in "ab") == ("a", "b")


def test_one_change_and_one_task_need_no_list() -> None:
    one = api.plan_run("bert_tickets/quick", "draw.sparsity=0.5")
    assert one.recipe == api.plan_run("bert_tickets/quick", ["draw.sparsity=0.5"]).recipe
    assert tombola.validate("bert_tickets/quick", "seed=[1,2]").startswith("a valid recipe, 18 cells")
    name = "bert_tickets/quick"
    many = api.plan_transfer(name, sources=["reviews"], targets=["reviews_product"])
    assert api.plan_transfer(name, sources="reviews", targets="reviews_product").recipe == many.recipe


def test_one_column_needs_no_list(tmp_path: Path) -> None:
    rows = [f"message {i},{'yn'[i % 2]}x" for i in range(40)]
    (tmp_path / "mail.csv").write_text("\n".join(["message,answer", *rows]))
    found = api.init_task(tmp_path / "mail.csv", text="message", label="answer")
    assert found.task.load("train").texts[0][0].startswith("message ")
    with pytest.raises(TombolaError, match="choose from typos"):
        tombola.compress("minilm", "reviews", against="everything", batch_size=8, text="message")


def test_a_ticket_in_memory_is_scored_shown_shrunk_and_exported(ticket: Ticket, tmp_path: Path) -> None:
    assert tombola.evaluate(ticket, on="validation") == tombola.evaluate(ticket.folder, on=["validation"])
    ((name, mask),) = tombola.inspect(ticket).masks.items()
    assert (name, mask) == (str(ticket.folder), ticket.mask)
    assert api.shrink(ticket, tmp_path / "small").removed == ticket.mask.removed
    pytest.importorskip("onnxruntime")
    tombola.export(ticket, tmp_path / "ticket.onnx")
    assert (tmp_path / "ticket.onnx").is_file()


BUILT_IN = [kind for _, kind in Attack.choices.items() if kind.__module__.startswith("tombola.")]


@pytest.mark.parametrize("settings", [tombola.Selection, Local, Ray, Resources, Attack, *BUILT_IN])
def test_type_checkers_know_what_may_be_left_out(settings: type[BaseModel]) -> None:
    """They know a pydantic default only by its keyword: with `Field(1)`, the argument seems to be required."""
    (body,) = ast.parse(inspect.getsource(settings)).body
    assert isinstance(body, ast.ClassDef)
    fields = [
        line for line in body.body if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call)
    ]
    for line in fields:
        if line.value.func.id == "Field":
            assert not line.value.args, f"{ast.unparse(line)}: write Field(default=…)"
