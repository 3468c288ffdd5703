"""What all benchmarks share, the list of `make bench`, and the page that shows the figures of all machines."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools")]

import bench  # noqa: E402
import build_performance  # noqa: E402
import measuring  # noqa: E402
import sharing_cores  # noqa: E402
from measuring import Figure, Lap, Turns, in_turns  # noqa: E402

LEFT_OUT = {
    "bench": "runs the others",
    "measuring": "what they share",
    "sleeping": "a stage of studies",
    "against_torch_pruning": "compares accuracy, and needs a fine-tuned model",
}


def test_every_script_is_in_the_list_of_make_bench():
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert scripts == {*bench.BENCHMARKS, *LEFT_OUT}


def test_the_page_is_fresh():
    page = build_performance.PAGE.read_text(encoding="utf-8")
    assert page == build_performance.renewed(
        page, build_performance.read_machines(build_performance.MACHINES)
    )


def test_figures_of_machines_stand_side_by_side():
    figure = {"name": "a ÷ b", "goal": "≤ 1", "value": 0.5}
    one, other = (
        {
            "machine": {"processor": name, "instructions": "AVX2", "threads": 1},
            "benchmarks": {"imp": {"others": busy, "figures": [{**figure, "value": value}]}},
        }
        for name, busy, value in (("first", 0.0, 0.5), ("second", 1.5, 1.2))
    )
    lines = list(build_performance.tables([one, other]))
    assert "| a ÷ b | ≤ 1 | 0.50 | ✗ 1.20 | no |" in lines
    assert "busy" not in lines[0]
    assert lines[1].endswith("busy with other work during imp")
    assert "| a ÷ b | ≤ 1 | 0.50 | 0.50 | yes |" in list(build_performance.tables([one, one]))


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [("≤ 1.03", 1.03, True), ("≤ 1.03", 1.031, False), ("≥ 4", 3.9, False), ("", 1, None)],
)
def test_goals(goal, value, met):
    assert Figure("x", value, goal).met is met


def test_ways_take_turns_and_who_is_first_alternates():
    calls = []
    ways = {name: lambda name=name: calls.append(name) for name in "ab"}
    turns = in_turns(ways, rounds=3, before=lambda: calls.append("-"))
    assert "".join(calls) == "-a-b-b-a-a-b-b-a"
    assert [len(laps) for laps in turns.laps.values()] == [3, 3]


def test_a_ratio_is_the_median_of_rounds_by_processor_time_with_the_wall_time_beside_it():
    ours = [Lap(2.0, 9.0, 1.0), Lap(3.0, 8.0, 1.0), Lap(8.0, 8.0, 1.0)]
    turns = Turns({"ours": ours, "plain": [Lap(2.0, 2.0, 1.0)] * 3})
    figure = turns.ratio("ours ÷ plain", "ours", "plain", "≤ 2")
    assert (figure.value, figure.low, figure.high, figure.wall, figure.busy) == (1.5, 1.0, 4.0, 4.0, "")
    waited = Turns({"ours": [Lap(1.0, 2.0, 0.5)], "plain": [Lap(1.0, 1.0, 1.0)]})
    assert waited.ratio("x", "ours", "plain").busy == "got 50% of the processor time it asked for"


def test_processor_time_counts_children():
    work = [sys.executable, "-c", "sum(range(3_000_000))"]
    assert measuring.lap_of(lambda: subprocess.run(work, check=True)).processor > 0.03


def test_no_cell_is_cut_at_80_columns():
    long = "minilm, 32 × 128, int8: speed-up ÷ FLOP ratio at 1.3 ×"
    figures = [
        Figure(long, 123.4, "≤ 0.93", "s", low=0.061, high=0.072, wall=0.101, busy="x"),
        Figure(long, 11.12, "≤ 1.15", low=9.1, high=11.2, wall=11.3),
    ]
    console = Console(width=80, record=True, file=StringIO())
    console.print(measuring.table_of("x", figures))
    text = console.export_text()
    assert "…" not in text
    assert max(map(len, text.splitlines())) == 80
    assert "✗" in text


def test_the_runner_keeps_what_it_does_not_run_again_and_names_what_failed(tmp_path, monkeypatch, capsys):
    found = {"others": 1.3, "figures": [{"name": "a ÷ b", "value": 1.0, "goal": "≤ 2"}]}
    monkeypatch.setattr(bench, "measured", lambda name, *_: None if name == "rose" else found)
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"machine": {}, "benchmarks": {"drawing": found}}))
    monkeypatch.setattr(sys, "argv", ["bench.py", "imp", "rose", "--output", str(file)])
    with pytest.raises(SystemExit, match="these benchmarks failed: rose"):
        bench.main()
    assert list(json.loads(file.read_text())["benchmarks"]) == ["drawing", "imp"]
    assert "imp: machine busy: others used 1.3 of" in capsys.readouterr().out


def test_the_runner_refuses_a_benchmark_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench.py", "nothing"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "no benchmark nothing" in capsys.readouterr().err


@pytest.mark.slow
def test_two_runs_at_once_take_little_more_processor_time_than_one_after_the_other():
    figure = sharing_cores.two_against_one(threads=2, steps=20, rounds=3)
    assert figure.met, f"{figure.value:.2f} times the processor time of one run"
