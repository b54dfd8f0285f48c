"""Trees that stand for "/" (`--sysfs-root`), and what `muster monitor` records of them."""

import contextlib
import json
import shutil
import subprocess

from devices.fleet import wait_until
from programs import MUSTER, scratch


class Tree:
    """An empty folder of files as the kernel writes them."""

    def __init__(self, name):
        self.root = scratch(name)
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def write(self, path, content):
        path = self.root / str(path).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def last_line(path):
    """The last whole line of a recording, as a value; None when there is none yet."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return json.loads(lines[-1]) if lines else None


@contextlib.contextmanager
def recording(root, name="tree", before=None):
    """`muster monitor --out` on a tree; yields the file once it has a line. before: run in the child first."""
    out = scratch(f"{name}.jsonl")
    out.unlink(missing_ok=True)
    command = [str(MUSTER), "monitor", "--sysfs-root", str(root), "--interval", "200ms", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=before)

    def has_line():
        if process.poll() is not None:
            raise RuntimeError(f"muster monitor ended with {process.returncode}: {process.stderr.read().strip()[-400:]}")
        return last_line(out)

    try:
        wait_until("a line of the recording", has_line, 30, 0.05)
        yield out
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def device(line, name):
    return next(one for one in line["devices"] if one["name"] == name)
