"""Search against numpy, the arrows between folders, and the package unpacked elsewhere, with its completion and manual."""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

import texts
from programs import MODEL, MUSTER, ROOT, children_of, embed, embed_command, scratch
from report import holds

TITLE = "Search against numpy; an undeclared include; the package unpacked elsewhere under env -i"
IS_TIMED = False

QUESTIONS = ("edit photos in the terminal", "a game about trains", "Wörterbuch Deutsch Englisch")
HIT_COUNT = 10
# Scores closer than this may change places: numpy sums in another order.
SCORE_TOLERANCE = 1e-6
LIBRARY = re.compile(r"\.so[\d.]*$")
# What shells and `man` read, as the packed program itself prints it.
PRINTED = {
    "share/bash-completion/completions/muster": ("completion", "bash"),
    "share/zsh/site-functions/_muster": ("completion", "zsh"),
    "share/fish/vendor_completions.d/muster.fish": ("completion", "fish"),
    "share/man/man1/muster.1": ("manual",),
}
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|pthread|dl|rt|resolv|util|anl|nss_\w+))(-[\d.]+)?\.so")


def search(out):
    done = subprocess.run([MUSTER, "search", out, *QUESTIONS, "--top", str(HIT_COUNT), "--json"], capture_output=True,
                          text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_search(report):
    source, out = texts.sample_file(), scratch("search.npy")
    embed(source, out, "--devices", "1xcpu", "--precision", "fp32")
    rows = numpy.load(out).astype(numpy.float64)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    questions, questions_out = texts.write_lines("questions.txt", QUESTIONS), scratch("questions.npy")
    embed(questions, questions_out, "--devices", "1xcpu", "--precision", "fp32")
    asked = numpy.load(questions_out).astype(numpy.float64)
    asked /= numpy.linalg.norm(asked, axis=1, keepdims=True)
    answers = search(out)
    report.raw["search"] = answers
    wrong = []
    for answer, vector in zip(answers, asked):
        scores = rows @ vector
        expected = numpy.lexsort((numpy.arange(len(scores)), -scores))[:HIT_COUNT]
        for hit, row in zip(answer["hits"], expected):
            if hit["row"] != row and abs(scores[hit["row"]] - scores[row]) > SCORE_TOLERANCE:
                wrong.append(f"{answer['query']}: row {hit['row']} where numpy has {row}")
        if len(answer["hits"]) != HIT_COUNT:
            wrong.append(f"{answer['query']}: {len(answer['hits'])} hits")
    report.add(holds("hits against numpy", not wrong, "; ".join(wrong) or f"{len(QUESTIONS)} x {HIT_COUNT} equal", "equal"))


def check_arrows(report):
    """The check itself, on a copy of src/ with one include that is not declared."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cp", "-r", ROOT / "src", folder], check=True)
        command = [sys.executable, "-B", ROOT / "tests/tidy/check_arrows.py", folder]
        clean = subprocess.run(command, capture_output=True, text=True)
        header = pathlib.Path(folder, "src/scheduler/undeclared.h")
        header.write_text('#include "net/frame.h"\n')
        refused = subprocess.run(command, capture_output=True, text=True)
    report.add(holds("src/ as it is", clean.returncode == 0, clean.stdout.strip().splitlines()[-1], "accepted"))
    said = refused.stdout.strip()
    report.add(holds("with an undeclared include", refused.returncode != 0 and "undeclared.h" in said, said, "refused"))


def libraries_of(pid):
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return set()
    paths = {line.split(None, 5)[5] for line in maps.splitlines() if "/" in line}
    return {path for path in paths if LIBRARY.search(path)}


def unlike_printed(package):
    """The files of PRINTED that are missing or say something else than the program."""
    unlike = []
    for name, words in PRINTED.items():
        said = subprocess.run(["env", "-i", package / "bin/muster", *words], capture_output=True, check=True).stdout
        path = package / name
        if not said or not path.is_file() or path.read_bytes() != said:
            unlike.append(name)
    return unlike


def check_package(report):
    subprocess.run([ROOT / "package"], check=True, stdout=subprocess.DEVNULL)
    tarball = max((ROOT / "dist").glob("muster-*.tar.gz"), key=lambda p: p.stat().st_mtime)
    torch = os.path.realpath(os.environ["MUSTER_TORCH_ROOT"])
    with tempfile.TemporaryDirectory(prefix="elsewhere-") as folder:
        subprocess.run(["tar", "-xzf", tarball, "-C", folder], check=True)
        package = next(pathlib.Path(folder).iterdir()).resolve()
        out = pathlib.Path(folder, "out.npy")
        command = embed_command(texts.sample_file(2000), out, "--torch-root", torch, "--devices", "2xcpu", "--quiet",
                                muster=package / "bin/muster")
        process = subprocess.Popen(["env", "-i", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        loaded = set()
        while process.poll() is None:
            for pid in [process.pid, *children_of(process.pid)]:
                loaded |= libraries_of(pid)
        err = process.stderr.read()
        unlike = unlike_printed(package)
    foreign = sorted(path for path in loaded if not path.startswith((str(package / "lib"), str(pathlib.Path(torch).parent)))
                     and not GLIBC.match(os.path.basename(path)))
    report.raw["package"] = {"tarball": tarball.name, "stderr": err[-2000:]}
    places = ((str(package), "PACKAGE"), (str(pathlib.Path(torch).parent), "SITE-PACKAGES"))
    report.raw["package"]["libraries"] = [functools.reduce(lambda path, pair: path.replace(*pair), places, path)
                                          for path in sorted(loaded)]
    report.add(holds("the package runs under env -i", process.returncode == 0, f"exit code {process.returncode} {err[-200:]}",
                     "exit code 0"))
    report.add(holds("its libraries", not foreign and any("libtorch_cpu" in p for p in loaded),
                     ", ".join(foreign) or f"{len(loaded)}, all from its own lib/, torch or glibc",
                     "from its own lib/, torch or glibc"))
    report.add(holds("completion for bash, zsh and fish, and the manual page", not unlike, ", ".join(unlike) or f"{len(PRINTED)} files",
                     "in the package, as its program prints them"))


def measure(report, arguments):
    check_search(report)
    check_arrows(report)
    check_package(report)
