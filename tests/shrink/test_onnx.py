import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import PreTrainedModel

from tests.foundations.hardware.stand_ins import killed, printing, program
from tests.shrink.masks import half
from tests.tiny import MODEL_TYPES, tiny, token_ids
from tests.words import word_tokenizer
from tests.world import World
from tombola.errors import TombolaError
from tombola.models.loading import load_tokenizer
from tombola.shrink import Export, RandomTokens, TaskTexts, export_onnx, onnx_writing, runtime, shrink
from tombola.shrink.agreement import compare_int8
from tombola.shrink.inputs import outputs_of
from tombola.tasks import Task

pytestmark = pytest.mark.portable

FAST: dict[str, Any] = {"batch_sizes": (2,), "rounds": 1}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreTrainedModel, Export]:
    """A shrunk BERT, and what its export to ONNX says."""
    model = tiny("bert")
    shrunk = shrink(model, half(model, "head+neuron", empty=0))
    return shrunk, export_onnx(shrunk, tmp_path_factory.mktemp("onnx") / "model.onnx", **FAST)


def test_a_shrunk_model_runs_in_onnxruntime_as_in_pytorch(exported: tuple[PreTrainedModel, Export]) -> None:
    shrunk, export = exported
    assert export.max_difference < 1e-5
    assert export.bytes == export.path.stat().st_size
    assert [file.name for file in export.path.parent.iterdir()] == ["model.onnx"]
    assert export.texts == "random tokens, 64 per text"
    assert export.speedup[2].low <= export.speedup[2].ratio <= export.speedup[2].high
    session = onnxruntime.InferenceSession(export.path, providers=["CPUExecutionProvider"])
    ids = torch.randint(5, 60, (7, 11))
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }
    (logits,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
    with torch.no_grad():
        np.testing.assert_allclose(logits, shrunk(**inputs).logits.numpy(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_shrunk(model_type: str, tmp_path: Path) -> None:
    model = tiny(model_type)
    shrunk = shrink(model, half(model, "head+neuron", empty=0))
    assert export_onnx(shrunk, tmp_path / "model.onnx", **FAST).max_difference < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "head"),
    [("roberta", "masked-lm"), ("bert", "question-answering"), ("llama", "causal-lm"), ("bert", "base")],
)
def test_other_heads_dense(model_type: str, head: str, tmp_path: Path) -> None:
    assert export_onnx(tiny(model_type, head), tmp_path / "model.onnx", **FAST).max_difference < 1e-5


@pytest.mark.slow
def test_int8_from_a_folder_in_half_precision(tmp_path: Path) -> None:
    wide = {"hidden_size": 128, "intermediate_size": 512, "num_attention_heads": 4}
    tiny("bert", **wide).to(torch.bfloat16).save_pretrained(tmp_path / "folder")
    export = export_onnx(tmp_path / "folder", tmp_path / "model.onnx", int8=True, **FAST)
    assert export.int8 is not None
    assert export.int8.path == tmp_path / "model.int8.onnx"
    assert export.int8.bytes == export.int8.path.stat().st_size < export.bytes / 2
    assert export.int8.max_difference > export.max_difference
    assert export.int8.agreement is not None
    assert export.int8.agreement > 0.8
    assert set(export.speedup) == set(export.int8.speedup) == {2}
    assert (export.metric, export.score, export.int8.score) == (None, None, None)


@pytest.mark.slow
def test_int8_is_judged_on_texts_of_the_task(world: World, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(world.model)
    wide = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
    model = tiny("bert", vocab_size=len(tokenizer), **wide)
    split = Task.named(str(world.task)).load("validation")
    texts = TaskTexts.of(split, tokenizer, 16, model.config)
    export = export_onnx(model, tmp_path / "model.onnx", int8=True, texts=texts, **FAST)
    assert export.texts == texts.about
    logits = [
        run(model, session, batch)
        for session in (None, runtime.open_session(tmp_path / "model.int8.onnx"))
        for batch in texts.in_order(model, len(split))
    ]
    original, quantised = (rows.argmax(dim=1) for rows in logits)
    labels = torch.tensor(split.labels)
    assert export.int8 is not None
    assert export.metric == "accuracy"
    assert export.score == pytest.approx((original == labels).float().mean().item())
    assert export.int8.score == pytest.approx((quantised == labels).float().mean().item())
    assert export.int8.agreement == pytest.approx((original == quantised).float().mean().item())


def run(model: PreTrainedModel, session: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    outputs = runtime.run_session(session, batch) if session else outputs_of(model, batch)
    return outputs["logits"]


def test_a_model_that_differs_is_not_written(
    exported: tuple[PreTrainedModel, Export], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, export = exported
    monkeypatch.setattr(onnx_writing, "_write", lambda model, path, *_: shutil.copy(export.path, path))
    # What an exporter cannot see: the model computes something else when it runs.
    hook = model.classifier.register_forward_hook(lambda module, inputs, logits: logits + 1)
    with pytest.raises(TombolaError, match=r"differs from PyTorch by 1 at batch 1 and length 5"):
        export_onnx(model, tmp_path / "model.onnx")
    hook.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_model_that_kills_onnxruntime_kills_no_more_than_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "TRIAL", killed("SIGILL"))
    with pytest.raises(TombolaError, match=r"float32 model on this machine \(SIGILL killed it\)"):
        export_onnx(tiny("distilbert"), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (killed("SIGSEGV"), "SIGSEGV killed it"),
        (printing({"error": "no kernel"}, then="sys.exit(1)"), "no kernel"),
        (program("raise SystemExit(3)"), "exit code 3"),
        (["/no/such/python"], "No such file or directory"),
    ],
)
def test_a_trial_that_fails_says_why_and_what_to_do(
    command: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "TRIAL", command)
    with pytest.raises(TombolaError) as error:
        runtime.try_session(tmp_path / "model.onnx", [(1, 5)], "int8", "export it without --int8")
    assert str(error.value) == (
        f"onnxruntime cannot run the int8 model on this machine ({reason}), so nothing was written: "
        "export it without --int8."
    )


def test_the_trial_reports_what_onnxruntime_says(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(TombolaError, match=r"\(.*INVALID_PROTOBUF.*\)"):
        runtime.try_session(
            tmp_path / "model.onnx", [(1, 5)], "float32", "try another version of onnxruntime"
        )


def test_sessions_have_the_threads_of_torch_and_do_not_spin(exported: tuple[PreTrainedModel, Export]) -> None:
    options = runtime.open_session(exported[1].path).get_session_options()
    assert options.intra_op_num_threads == torch.get_num_threads()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_inputs_of_a_session_are_those_of_its_graph(exported: tuple[PreTrainedModel, Export]) -> None:
    session, ids = runtime.open_session(exported[1].path), token_ids()
    plain = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with_zeros = {**plain, "token_type_ids": torch.zeros_like(ids), "position_ids": ids}
    one, two = (runtime.run_session(session, inputs)["logits"] for inputs in (plain, with_zeros))
    torch.testing.assert_close(one, two, atol=0, rtol=0)


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(onnx_writing, "find_spec", lambda name: None if name == "onnxscript" else find(name))
    with pytest.raises(TombolaError, match=r"needs onnxscript: pip install 'tombola\[onnx\]'"):
        export_onnx(tiny("bert"), tmp_path / "model.onnx")


def test_a_file_asks_for_what_the_tokenizer_gives(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert"), word_tokenizer(["a fine film", "the plot"], segments=False)
    assert model.config.type_vocab_size == 2
    export = export_onnx(model, tmp_path / "model.onnx", token_types=False, **FAST)
    texts = tokenizer(["a fine film", "the plot"], padding=True, return_tensors="np")
    (logits,) = runtime.open_session(export.path).run(None, dict(texts))
    expected = outputs_of(model, {name: torch.from_numpy(value) for name, value in texts.items()})
    np.testing.assert_allclose(logits, expected["logits"].numpy(), atol=1e-5)
    # Without texts of a task, both models are compared on the same random inputs.
    compared = compare_int8(model, export.path, RandomTokens(16), token_types=False)
    assert compared.max_difference < 1e-5
