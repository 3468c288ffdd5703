"""How long a person waits before anything happens: `import tombola` and `tombola --help`, against bare Python.

python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

ROUNDS = 7
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import tombola": ["-c", "import tombola"],
    "tombola --help": ["-m", "tombola", "--help"],
    "import transformers": ["-c", "import transformers"],
    "import torch": ["-c", "import torch"],
}


def seconds(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    times = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    bare = statistics.median(times["python -c pass"])
    table = Table("command", "median seconds", "× bare Python")
    for name, found in times.items():
        median = statistics.median(found)
        table.add_row(name, f"{median:.3f}", f"{median / bare:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
