"""Commands of the documentation, run from a shell as they are written, each in a process that has imported the package.

Importing takes longer than most of the commands do. So one process imports everything, once; `tombola` and `python` on
the path of the shell are small clients, which hand it their arguments, folder, environment, input and output; and it
forks.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

CLIENT = """#!{python} -IS
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
line.connect({address!r})
asked = json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(line, [len(asked).to_bytes(4, "big")], [0, 1, 2])
line.sendall(asked)
sys.exit(int.from_bytes(line.recv(4), "big"))
"""


def serve(address: str) -> None:
    """Import everything, then run a child for every client until the parent is gone."""
    import tombola.api
    import tombola.cli
    import tombola.evaluation.evaluate
    import tombola.pipeline.builder
    import tombola.tickets.opening
    import tombola.training.loop  # noqa: F401

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(address)
        door.listen()
        door.settimeout(1)
        parent = os.getppid()
        while os.getppid() == parent:  # a test that was killed leaves nothing behind
            try:
                line, _ = door.accept()
            except TimeoutError:
                continue
            line.setblocking(True)
            if os.fork() == 0:
                _answer(line)
            line.close()


def _answer(line: socket.socket) -> None:
    """Fork once more, so that the exit code is known, and tell it to the client."""
    import json

    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    content = b""
    while len(content) < int.from_bytes(size, "big"):
        content += line.recv(1 << 16)
    name, arguments, folder, environment = json.loads(content)
    child = os.fork()
    if child == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        os._exit(run_program(name, arguments))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    line.sendall((code if code >= 0 else 128 - code).to_bytes(4, "big"))
    os._exit(0)


def run_program(name: str, arguments: list[str]) -> int:
    """What `tombola ARGUMENTS`, `python -c CODE`, `python -m MODULE` or `python FILE` does; the exit code."""
    import runpy
    import traceback

    try:
        if name == "tombola":
            from tombola.cli import main

            sys.argv = ["tombola", *arguments]
            main()
        elif arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            exec(compile(arguments[1], "<docs>", "exec"), {"__name__": "__main__"})
        elif arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).parent))
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


@contextmanager
def shell(folder: Path, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which `tombola` and `python` are quick.

    Args:
        folder: Where the clients and the socket go.
        environment: What the process that imports the package sees.
    """
    commands = folder / "bin"
    commands.mkdir(parents=True)
    address = str(commands / "socket")
    for name in ("tombola", "python"):
        (commands / name).write_text(CLIENT.format(python=sys.executable, address=address, name=name))
        (commands / name).chmod(0o755)
    code = f"from tests.commands import serve; serve({address!r})"
    paths = [str(Path(__file__).parent.parent), *filter(None, [environment.get("PYTHONPATH")])]
    server = subprocess.Popen(
        [sys.executable, "-c", code], env={**environment, "PYTHONPATH": os.pathsep.join(paths)}
    )
    try:
        while not os.path.exists(address):
            assert server.poll() is None, "the process that imports the package has ended"
            time.sleep(0.05)
        yield {**environment, "PATH": f"{commands}{os.pathsep}{environment['PATH']}"}
    finally:
        server.kill()
        server.wait()


def run(words: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(words, cwd=folder, env=dict(environment), capture_output=True, text=True)
    assert done.returncode == 0, f"{words[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout
