"""`cmake --install` into a prefix, and what is there afterwards: it works from any place, also when it is moved; the shells
complete from it, and its manual page is right.

    install.py BUILD
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import shells

EXPECTED = [
    "bin/muster", "bin/muster-sampler", "lib/libfakenvml.so", "share/bash-completion/completions/muster",
    "share/zsh/site-functions/_muster", "share/fish/vendor_completions.d/muster.fish", "share/man/man1/muster.1",
    "share/muster/Dockerfile", "share/muster/compose.yml", "share/muster/models.json", "share/muster/prometheus/muster.rules.yml",
    "share/muster/prometheus/prometheus.yml", "share/muster/grafana/muster.json",
    "share/muster/grafana/provisioning/datasources/prometheus.yml", "share/muster/fake_machines/busy-8xh200.json",
    "share/doc/muster/README.md", "share/doc/muster/LICENSE", "share/doc/muster/docs/settings.md",
]

faults = []


def expect(is_right, sentence):
    if not is_right:
        faults.append(sentence)


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def check_programs(prefix):
    """The program finds its sampler beside it, and the stand-in for NVIDIA's library where it was put."""
    # With nothing of this tree in the environment, and from another folder.
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent",
                   "FAKENVML_SCENARIO": str(prefix / "share/muster/fake_machines/busy-8xh200.json")}
    environment |= {name: os.environ[name] for name in ("ASAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ}
    done = run(prefix / "bin/muster", "devices", "--json", "--nvml-path", prefix / "lib/libfakenvml.so", env=environment, cwd="/")
    expect(done.returncode == 0, f"muster devices: {done.stderr}")
    if done.returncode == 0:
        gpus = json.loads(done.stdout)["gpus"]
        expect(len(gpus) == 8 and "H200" in gpus[0]["model"], f"muster devices shows {gpus}")


def check_shell_files(prefix):
    for shell, name in {"bash": "bash-completion/completions/muster", "zsh": "zsh/site-functions/_muster",
                        "fish": "fish/vendor_completions.d/muster.fish"}.items():
        if shutil.which(shell):
            done = run(shell, "-n", prefix / "share" / name)
            expect(done.returncode == 0, f"{shell} -n: {done.stderr}")


def check_manual(prefix):
    page = prefix / "share/man/man1/muster.1"
    if shutil.which("mandoc"):
        done = run("mandoc", "-Tlint", "-W", "warning", page)
        expect(done.returncode == 0 and not done.stdout, f"mandoc -Tlint: {done.stdout}")
    if shutil.which("groff"):
        done = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
        expect(done.returncode == 0 and not done.stderr, f"groff -ww: {done.stderr}")
    if shutil.which("man"):
        done = run("man", "--warnings", "-l", page, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MANWIDTH": "100", "PAGER": "cat", "HOME": "/nonexistent"})
        expect(done.returncode == 0 and not done.stderr, f"man -l: {done.stderr}")
        for part in ("muster embed MODEL INPUT... -o OUT", "--batch-tokens N", "source <(muster completion bash)", "EXIT STATUS"):
            expect(part in done.stdout, f"man -l does not show {part}")


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="muster-install-") as folder:
        folder = pathlib.Path(folder)
        prefix = folder / "a prefix"
        done = run("cmake", "--install", build, "--prefix", prefix)
        expect(done.returncode == 0, f"cmake --install: {done.stdout}{done.stderr}")
        for name in EXPECTED:
            expect((prefix / name).is_file(), f"it installs no {name}")
        strange = [path for path in prefix.rglob("*") if path.name.endswith((".py", ".test.yml")) and "examples" not in path.parts]
        expect(not strange, f"it installs {strange}")
        moved = folder / "moved"
        prefix.rename(moved)
        check_programs(moved)
        check_shell_files(moved)
        check_manual(moved)
        (folder / "work").mkdir()
        wrong, missing = shells.check(moved, folder / "work")
        faults.extend(wrong)
        for shell in missing:
            print(f"{shell} is not on this machine: its completion is left out")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
