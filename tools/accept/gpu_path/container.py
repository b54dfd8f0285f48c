"""A container of little more than glibc, bash, a few tools of coreutils and Python, made of this machine's own files."""

import os
import pathlib
import shutil
import subprocess
import time

from programs import DEPS

TOOLS = ("bash", "env", "python3", "awk", "basename", "cat", "cmp", "cp", "date", "dirname", "grep", "head", "kill", "ln", "ls", "mkdir",
         "nproc", "readlink", "realpath", "rm", "sed", "sleep", "sort", "tail", "tee", "timeout", "tr", "uname", "wc")

# What every glibc brings, whether a tool here names it or not.
GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2", "libanl.so.1")

RUN_S = 600  # of a command: a call of the kit ends within eight minutes


def site_packages():
    return next(iter((DEPS / "venv" / "lib").glob("python3.*/site-packages")), None)


def skip_reason():
    if site_packages() is None:
        return "there is no torch wheel (./quickstart fetches it)"
    made = subprocess.run(["unshare", "-rm", "true"], capture_output=True)
    return None if made.returncode == 0 else "this machine lets nobody make a mount namespace (unshare -rm)"


def libraries_of(program):
    """The libraries that a program or library names, as they lie here."""
    for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        path = words[2] if len(words) > 2 and words[1] == "=>" else words[0] if words else ""
        if path.startswith("/"):
            yield pathlib.Path(path)


class Container:
    """`root` is its file system; every run has namespaces of its own for mounts and users."""

    def __init__(self, root):
        self.root = root

    def __enter__(self):
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in ("bin", "dev", "etc", "kit", "packages", "proc", "results", "sys", "tmp", "usr/lib"):
            (self.root / folder).mkdir(parents=True)
        self.python = pathlib.Path("/usr/bin/python3").resolve()
        self.standard = pathlib.Path("/usr/lib") / self.python.name
        (self.root / self.standard.relative_to("/")).mkdir()
        needed = [path for tool in TOOLS if (path := shutil.which(tool, path="/usr/bin:/bin"))]
        modules = sorted((self.standard / "lib-dynload").glob("*.so"))
        for program in needed:
            shutil.copy(program, self.root / "bin" / pathlib.Path(program).name)
        libraries = {library for file in [*needed, *modules] for library in libraries_of(file)}
        beside = next(library.parent for library in libraries if library.name == "libc.so.6")
        libraries.update(path for name in GLIBC if (path := beside / name).exists())
        for library in libraries:
            target = self.root / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(library, target)
        (self.root / "bin" / "sh").symlink_to("bash")
        (self.root / "usr" / "bin").symlink_to("../bin")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, command, with_torch=True):
        """{"code", "output", "seconds"} of a command that sees nothing else of this machine than its kernel's files; no code where it came to
        no end."""
        binds = [("/proc", "proc"), ("/dev", "dev"), ("/sys", "sys"), (self.standard, self.standard.relative_to("/"))]
        binds += [(site_packages(), "packages")] if with_torch else []
        script = "".join(f"mount --rbind {source} {self.root / target}\n" for source, target in binds)
        script += f'exec chroot {self.root} /bin/env -i PATH=/bin HOME=/tmp PYTHONPATH=/packages "$@"\n'
        began = time.monotonic()
        try:
            done = subprocess.run(["unshare", "-rm", "sh", "-euc", script, "sh", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=RUN_S, env={**os.environ, "LC_ALL": "C"})
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            code, output = None, (error.stdout or b"").decode(errors="replace")
        return {"code": code, "output": output[-6000:], "seconds": time.monotonic() - began}
