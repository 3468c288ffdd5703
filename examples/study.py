"""Run a study from Python: tickets against the dense model, with intervals, paired tests and a report.

python examples/study.py
"""

import tombola
from tombola.report import write_report

RECIPE = {
    "name": "example-study",
    "model": "minilm",
    "task": "reviews",
    "seed": [1, 2],
    "data": {"train": 160, "evaluation": 200},
    "train": {"epochs": 1, "learning_rate": 1e-4, "batch_size": 8, "max_length": 32},
    "draw": {"sparsity": 0.3},
    "variants": {
        "dense": {"search": None},
        "magnitude": {"search": {"method": "magnitude"}},
    },
}


def main() -> None:
    study = tombola.study(RECIPE)
    for row in study.rows():
        if row["metric"] == "accuracy":
            print(f"{row['variant']:<10} {row['mean']:.1%} ({row['low']:.1%} to {row['high']:.1%})")
    for one in study.differences("validation"):
        p = "no test: equal in every seed" if one.t is None else f"p = {one.t:.2f}"
        print(f"{one.first['variant']} minus {one.second['variant']}: {one.mean:+.1%}, {p}")
    print("report:", write_report(study))


if __name__ == "__main__":
    main()
