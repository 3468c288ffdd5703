import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import tombola
from tests.tickets.test_shrinking import known_ticket
from tests.tiny import tiny
from tests.words import decoder_tokenizer, word_tokenizer
from tests.world import World
from tombola.attacks.run import attack
from tombola.cli import app
from tombola.defenses import fit_defenses
from tombola.defenses.spelling import Spelling
from tombola.defenses.tokenizing import defense_of
from tombola.errors import DamagedArtefact, TombolaError
from tombola.models.loading import load_tokenizer
from tombola.shrink import onnx
from tombola.shrink.inputs import outputs_of
from tombola.shrink.onnx_model import find_onnx, open_onnx
from tombola.shrink.onnx_seal import check_onnx, seal_onnx
from tombola.tasks import Collate
from tombola.tickets.exporting import export_folder
from tombola.tickets.opening import open_classifier
from tombola.tickets.shrinking import shrink_ticket


@pytest.mark.slow
def test_a_ticket_is_exported_and_judged_on_its_own_task(world: World, tmp_path: Path) -> None:
    ticket = known_ticket(world, tmp_path / "ticket")
    done = export_folder(ticket, tmp_path / "model.onnx", int8=True)
    assert done.texts == "48 texts of tiny/validation, 6 tokens on average"
    assert done.int8 is not None
    assert (done.metric, set(done.speedup), set(done.int8.speedup)) == ("accuracy", {1, 32}, {1, 32})
    assert done.score == pytest.approx(done.int8.score, abs=0.2)
    assert done.int8.agreement == pytest.approx(1, abs=0.2)


@pytest.fixture(scope="module")
def exported(world: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A ticket, and the folder that it was exported to."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    folder = tmp_path_factory.mktemp("exported")
    ticket = known_ticket(world, folder / "ticket")
    info = json.loads((ticket / "ticket.json").read_text())
    (ticket / "ticket.json").write_text(json.dumps({**info, "metrics": {}}))
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(onnx, "_time", lambda *_: [{}, {}])
        export_folder(ticket, folder / "exported", int8=True)
    return ticket, folder / "exported"


def test_an_exported_folder_predicts_and_scores_as_the_ticket(exported: tuple[Path, Path]) -> None:
    ticket, folder = exported
    assert find_onnx(folder) == folder / "model.onnx"
    assert find_onnx(ticket) is None
    texts = ["a very fine film", "the plot was dull"]
    for one, other in zip(tombola.predict(ticket, texts), tombola.predict(folder, texts), strict=True):
        assert one.label == other.label
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    assert tombola.evaluate(folder) == tombola.evaluate(
        ticket
    )  # it knows its task, and the length of its texts
    by_eight_bits = tombola.evaluate(folder / "model.int8.onnx")["validation"]["accuracy"].value
    assert by_eight_bits == pytest.approx(tombola.evaluate(ticket)["validation"]["accuracy"].value, abs=0.2)


def test_the_commands_take_the_folder_and_the_file(exported: tuple[Path, Path], tmp_path: Path) -> None:
    _, folder = exported
    (tmp_path / "new.csv").write_text("sentence\na very fine film\n")
    for model in (folder, folder / "model.int8.onnx"):
        for arguments in (
            ["evaluate", model],
            ["predict", model, tmp_path / "new.csv"],
            ["attack", model, "--recipe", "deepwordbug", "-n", 4, "-o", tmp_path / f"attack-{model.name}"],
        ):
            done = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
            assert done.exit_code == 0, arguments


def test_a_folder_keeps_nothing_of_the_model_exported_there_before(
    exported: tuple[Path, Path], world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "_time", lambda *_: [{}, {}])
    first = Path(shutil.copytree(exported[0], tmp_path / "first"))
    fit_defenses((Spelling(dictionary=None),), ["a very fine film"]).save(first)
    export_folder(first, tmp_path / "exported", int8=True)
    assert defense_of(load_tokenizer(tmp_path / "exported")) is not None
    second = Path(shutil.copytree(exported[0], tmp_path / "second"))
    (second / "ticket.json").unlink()
    export_folder(second, tmp_path / "exported")
    assert defense_of(load_tokenizer(tmp_path / "exported")) is None
    assert not {"model.int8.onnx", "export.json"} & {file.name for file in (tmp_path / "exported").iterdir()}


def test_a_defended_ticket_is_exported_into_its_own_folder(
    exported: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "_time", lambda *_: [{}, {}])
    ticket = Path(shutil.copytree(exported[0], tmp_path / "ticket"))
    fit_defenses((Spelling(dictionary=None),), ["a very fine film"]).save(ticket)
    export_folder(ticket, ticket / "model.onnx")
    assert tombola.evaluate(ticket / "model.onnx") == tombola.evaluate(ticket)


@pytest.mark.parametrize("pad", [None, 5])
def test_a_decoder_is_padded_as_its_tokenizer_pads(
    pad: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    monkeypatch.setattr(onnx, "_time", lambda *_: [{}])
    tokenizer = decoder_tokenizer(["a very fine film", "the plot was dull"])
    tokenizer.pad_token = None
    model = tiny("gpt2", num_labels=2, vocab_size=len(tokenizer), pad_token_id=pad)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    export_folder(tmp_path / "model", tmp_path / "exported")
    inputs = Collate(tokenizer)(
        [tokenizer(text, return_attention_mask=False) for text in ("a very fine film", "the plot")]
    )
    model.config.pad_token_id = tokenizer.eos_token_id
    (found,), (expected,) = (
        outputs_of(one, inputs).values() for one in (open_onnx(tmp_path / "exported/model.onnx"), model)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_an_attack_is_not_continued_with_another_file(exported: tuple[Path, Path], tmp_path: Path) -> None:
    _, folder = exported
    tokenizer, pairs = load_tokenizer(folder), [("a very fine film", 1), ("the plot was dull", 0)]
    journal = tmp_path / "journal.jsonl"
    attack(open_onnx(folder / "model.onnx"), tokenizer, pairs, "deepwordbug", resume=journal)
    with pytest.raises(TombolaError, match="differs in model"):
        attack(open_onnx(folder / "model.int8.onnx"), tokenizer, pairs, "deepwordbug", resume=journal)


def test_files_that_cannot_be_opened_are_told(exported: tuple[Path, Path], tmp_path: Path) -> None:
    ticket, folder = exported
    with pytest.raises(TombolaError, match="there is no file"):
        tombola.evaluate(folder / "none.onnx")
    (tmp_path / "bare").mkdir()
    shutil.copy(folder / "model.onnx", tmp_path / "bare")
    with pytest.raises(
        TombolaError, match="no config and no tokenizer beside it: export the model to a folder"
    ):
        tombola.evaluate(tmp_path / "bare" / "model.onnx")
    with pytest.raises(TombolaError, match="already contains a model"):
        export_folder(ticket, ticket)
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"no model")
    with pytest.raises(DamagedArtefact, match=r"model\.onnx does not match its checksum: it is damaged"):
        tombola.evaluate(broken / "model.onnx")
    (broken / "checksums.json").unlink()
    with pytest.raises(TombolaError, match=r"cannot run the model\.onnx model .*: export the model again"):
        tombola.evaluate(broken)


def test_a_single_file_that_was_damaged_is_named(exported: tuple[Path, Path], tmp_path: Path) -> None:
    _, folder = exported
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("checksums.json"))
    for name in ("model.onnx", "model.int8.onnx"):
        file = bare / name
        whole = file.read_bytes()
        check_onnx(file)
        for place in (9, len(whole) // 2, len(whole) - 100, len(whole) - 34, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(
                DamagedArtefact,
                match=f"{name} was damaged or changed after it was written.*export the model again",
            ):
                tombola.predict(file, ["a very fine film"])
        file.write_bytes(whole)
    assert tombola.predict(bare / "model.onnx", ["a fine film"]) == tombola.predict(folder, ["a fine film"])


def test_weights_beside_a_graph_are_checked_and_the_checksum_is_its_metadata(tmp_path: Path) -> None:
    onnx_package = pytest.importorskip("onnx")
    graph, weights = tmp_path / "large[1].onnx", tmp_path / "large[1].onnx.data"
    made = onnx_package.ModelProto(ir_version=8, producer_name="somebody")
    graph.write_bytes(made.SerializeToString())
    check_onnx(graph)  # another program's
    weights.write_bytes(b"\1" * 3_000_000)
    seal_onnx(graph)
    check_onnx(graph)
    read = onnx_package.load_model(graph, load_external_data=False)
    assert (read.ir_version, read.producer_name) == (8, "somebody")
    (entry,) = read.metadata_props
    assert entry.key == "tombola.checksum"
    assert entry.value.partition(" ")[2].startswith("large[1].onnx.data=")
    weights.write_bytes(b"\1" * 2_999_999 + b"\2")
    with pytest.raises(
        DamagedArtefact, match=r"large\[1\]\.onnx was damaged or changed after it was written"
    ):
        check_onnx(graph)
    weights.unlink()
    with pytest.raises(
        DamagedArtefact, match=r"large\[1\]\.onnx was damaged or changed after it was written"
    ):
        check_onnx(graph)


def test_a_shrunk_model_knows_its_task(world: World, tmp_path: Path) -> None:
    folder = known_ticket(world, tmp_path / "small")
    (folder / "ticket.json").rename(folder / "shrinkage.json")
    opened = open_classifier(folder, None, None)
    assert (opened.task, opened.max_length) == (str(world.task), 16)


def test_a_model_made_from_a_moved_one_has_its_task_file(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnx, "_time", lambda *_: [{}, {}])
    moved = known_ticket(world, tmp_path / "moved", task="gone/tiny.yaml")  # as on another machine
    shutil.copyfile(world.task, moved / "task.yaml")
    shrink_ticket(moved, tmp_path / "small", batch_sizes=(1,), length=16, rounds=1)
    export_folder(moved, tmp_path / "exported")
    for folder in ("small", "exported"):
        assert tombola.predict(tmp_path / folder, ["a very fine film"])
        (tmp_path / folder / "task.yaml").write_text("name: other\n")
        with pytest.raises(DamagedArtefact, match=r"task\.yaml"):
            tombola.predict(tmp_path / folder, ["a very fine film"])
    (moved / "task.yaml").unlink()
    (moved / "ticket.json").unlink()
    export_folder(moved, tmp_path / "exported")
    assert not (tmp_path / "exported" / "task.yaml").exists()


def test_the_output_of_the_tokenizer_is_the_input_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnx, "_time", lambda *_: [{}, {}])
    tiny("bert").save_pretrained(tmp_path / "model")
    with pytest.raises(TombolaError, match="no tokenizer"):
        export_folder(tmp_path / "model", tmp_path / "exported")
    assert not (tmp_path / "exported").exists()
    tokenizer = word_tokenizer(["a fine film"], segments=False)
    tokenizer.save_pretrained(tmp_path / "model")
    export_folder(tmp_path / "model", tmp_path / "exported")
    session = onnxruntime.InferenceSession(tmp_path / "exported" / "model.onnx")
    texts = dict(tokenizer(["a fine film"], return_tensors="np"))
    assert {one.name for one in session.get_inputs()} == texts.keys()
    assert session.run(["logits"], texts)[0].shape == (1, 2)
