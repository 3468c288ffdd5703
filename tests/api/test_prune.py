"""tombola prune: one shot without a store, and a folder that plain transformers opens."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

import tombola
from tests.masks.small import follows
from tests.tiny import tiny
from tests.words import word_tokenizer
from tests.world import BAD, GOOD, PLAIN, World, make_world
from tombola.cli import app
from tombola.errors import TombolaError
from tombola.masks import Mask, Units
from tombola.masks.patterns import parse_pattern

FEW = {"examples": 12, "max_length": 16}


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("decoder"), "llama")


def test_a_pruned_model_opens_in_plain_transformers_and_serves_a_recipe(
    decoder: World, tmp_path: Path
) -> None:
    done = tombola.prune(decoder.model, str(decoder.task), tmp_path / "pruned", pattern="2:4", **FEW)
    assert done.mask.sparsity == 0.5
    assert done.model_bytes > 0
    model = AutoModelForSequenceClassification.from_pretrained(done.folder)
    pattern = parse_pattern("2:4")
    for matrix in Units.of(model, "weight").layout.matrices:
        assert follows(model.base_model.get_parameter(matrix.tensor) != 0, pattern)
    recipe = decoder.recipe(
        train={"epochs": 0, "max_length": 16},
        retrain=None,
        search={"method": "given", "masks": [str(done.folder / "mask.safetensors")]},
    )
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    assert result.cells[0].mask is not None
    assert result.cells[0].mask.sparsity == 0.5


def test_it_prunes_as_a_recipe_does(decoder: World, tmp_path: Path) -> None:
    """The same data in the same order, so the same mask."""
    for method in ("wanda", "sparsegpt"):
        done = tombola.prune(
            decoder.model, str(decoder.task), tmp_path / method, method=method, sparsity=0.5, **FEW
        )
        recipe = decoder.recipe(
            train={"epochs": 0, "max_length": 16},
            retrain=None,
            search={"method": method, "calibration": {"examples": 12}},
        )
        output = tmp_path / f"run-{method}"
        result = tombola.run(recipe, output=output, store=tmp_path / "store")
        ticket = tombola.Ticket.from_pretrained(output / str(result.cells[0].ticket))
        assert ticket.mask == done.mask
        assert ticket.mask.base == done.mask.base
        pruned, shipped = (
            AutoModelForSequenceClassification.from_pretrained(folder).base_model.state_dict()
            for folder in (done.folder, ticket.folder)
        )
        assert all(torch.equal(pruned[name], shipped[name]) for name in pruned)


def test_the_command_says_what_it_did(decoder: World, tmp_path: Path) -> None:
    options = ["--examples", "12", "--max-length", "16", "-o", str(tmp_path / "pruned")]
    asked = ["prune", str(decoder.model), str(decoder.task), "block=8", "--method", "sparsegpt"]
    said = CliRunner().invoke(app, [*asked, "--sparsity", "0.25", *options], catch_exceptions=False)
    assert said.exit_code == 0, said.output
    assert "weights removed (25.00%)" in said.output
    assert Mask.load(tmp_path / "pruned" / "mask.safetensors").sparsity == 0.25
    assert '"block": 8' in (tmp_path / "pruned" / "pruned.json").read_text()


def test_mistakes_get_a_sentence(decoder: World, tmp_path: Path) -> None:
    def refused(**options: object) -> str:
        with pytest.raises(TombolaError) as caught:
            tombola.prune(decoder.model, str(decoder.task), tmp_path / "x", **{**FEW, **options})  # type: ignore[arg-type]
        return str(caught.value)

    assert "removes 0.5 of the weights, not 0.3" in refused(pattern="2:4", sparsity=0.3)
    assert "leave out the scope" in refused(pattern="2:4", scope="row")
    assert "is not a pattern" in refused(pattern="half")
    assert "between 0 and 1" in refused(sparsity=1.0)
    assert "Did you mean 'wanda'" in refused(method="wand")
    assert "cannot prune a model layer by layer" in refused(method="grasp")
    assert "unknown key 'dampening'" in refused(method="sparsegpt", settings={"dampening": 1})
    assert "pooler: only works in recipes" in refused(settings={"pooler": False})
    assert "examples: magnitude needs no examples" in refused(method="magnitude", examples=8)
    twice = {"settings": {"calibration": {"examples": 4}}, "examples": 8}
    assert "examples: calibration.examples gives their number too" in refused(method="wanda", **twice)
    assert "units: only works in recipes" in refused(method="magnitude", settings={"units": "head"})
    assert "settings.calibration" in refused(settings={"calibration": 5})
    assert "drawn one by one" in refused(scope="global")
    assert not (tmp_path / "x").exists()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").touch()
    assert "already exists" in refused()


@pytest.mark.slow
def test_killed_by_the_system_the_same_command_ends_with_the_same_bytes(
    decoder: World, tmp_path: Path
) -> None:
    tokenizer = word_tokenizer([" ".join(GOOD + BAD + PLAIN)])
    sizes = {"num_hidden_layers": 12, "hidden_size": 256, "intermediate_size": 1024}
    large = tmp_path / "large"
    tiny("llama", "base", vocab_size=len(tokenizer), **sizes).save_pretrained(large, max_shard_size="5MB")
    tokenizer.save_pretrained(large)

    def command(output: str) -> list[str]:
        asked = ["prune", str(large), str(decoder.task), "--method", "sparsegpt", "--examples", "24"]
        return [sys.executable, "-m", "tombola", *asked, "-o", str(tmp_path / output), "--quiet"]

    subprocess.run(command("whole"), check=True, capture_output=True)
    kills = 0
    journal = tmp_path / ".killed.pruning" / "journal.json"
    while not (tmp_path / "killed").exists():
        before = journal.read_bytes() if journal.exists() else b""
        process = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not journal.exists() or journal.read_bytes() == before):
            time.sleep(0.01)
        time.sleep(0.05 * (kills % 5))
        if process.poll() is None and kills < 6:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 3
    whole, killed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "killed")
    )
    assert whole == killed
