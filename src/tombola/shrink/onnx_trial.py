"""Run an ONNX model in onnxruntime. As a script it runs in a child process, since a matrix product may kill it.

It therefore imports nothing from Tombola. An error is printed as a JSON object.
"""

import argparse
import json
import sys
from typing import Any

import numpy as np
import onnxruntime


def open_session(path: str, threads: int) -> Any:
    """Open a CPU session. Its threads do not spin while they wait, which would slow down other processes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def main() -> int:
    """Run the model once at each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("shapes", nargs="+", help="batch and length, as 2x16")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an answer and needs no core file
    try:
        session = open_session(options.path, options.threads)
        for shape in options.shapes:
            tokens = np.ones([int(size) for size in shape.split("x")], dtype=np.int64)
            session.run(None, {node.name: tokens for node in session.get_inputs()})
    except Exception as error:  # onnxruntime has no base class for its errors
        print(json.dumps({"error": str(error).strip().split("\n")[0]}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
