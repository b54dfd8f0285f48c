"""Completion in the shells themselves, from an installed tree: bash and zsh on a pseudo-terminal, as somebody types, fish by its
own `complete -C`. A shell that is not on this machine is said, and left out; bash is always there.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

LIMIT_S = 60

# What is typed, and what it becomes: words that are offered, all of them where the second is a set that is closed.
CASES = [
    ("muster dev", {"devices"}),
    ("muster help esti", {"estimate"}),
    ("muster ctl dr", {"drain"}),
    ("muster embed --prec", {"--precision"}),
    ("muster embed --precision ", {"auto", "fp32", "bf16", "fp16", "int8"}),
    ("muster embed --precision=b", {"--precision=bf16"}),
    ("muster embed all-Mini", {"all-MiniLM-L6-v2"}),
    ("muster plan llama-3-8", {"llama-3-8b"}),
    ("muster pull BAAI/bge-m", {"BAAI/bge-m3"}),
    ("muster plan m --machine sim:8xH200-1", {"sim:8xH200-141G"}),
    ("muster embed all-MiniLM-L6-v2 some", {"some-notes.txt"}),
    ("muster embed all-MiniLM-L6-v2 x.txt --out=some", {"--out=some-notes.txt"}),
    ("muster embed all-MiniLM-L6-v2 x.txt --cache-dir fol", {"folder"}),
    ("muster completion ", {"bash", "zsh", "fish"}),
    ("muster ctl drain al", {"all"}),
    ("muster bench gen", {"generate"}),
    ("muster generate rep", {"reply.gguf"}),
    ("muster serve fol", {"folder"}),
    ("muster nosuch --x", set()),
]


def prepare(folder):
    """A home with one model in its hub cache, and files to be named."""
    snapshot = folder / "home/.cache/huggingface/hub/models--sentence-transformers--all-MiniLM-L6-v2"
    (snapshot / "snapshots/abc").mkdir(parents=True)
    (snapshot / "refs").mkdir()
    (snapshot / "refs/main").write_text("abc")
    (folder / "some-notes.txt").write_text("a text\n")
    (folder / "reply.gguf").write_text("a model\n")
    (folder / "folder").mkdir()


def environment(prefix, folder):
    kept = {name: os.environ[name] for name in ("ASAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ}
    return kept | {"PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": f"{folder}/home", "TERM": "dumb", "LANG": "C.UTF-8",
                   "INPUTRC": "/dev/null", "PS1": "", "PS2": ""}


class Typist:
    """A shell on a pseudo-terminal."""

    def __init__(self, words, prefix, folder):
        self.main, side = pty.openpty()
        self.process = subprocess.Popen(words, stdin=side, stdout=side, stderr=side, cwd=folder, env=environment(prefix, folder),
                                        start_new_session=True)
        os.close(side)
        self.seen, self.count = "", 0

    def type(self, text):
        os.write(self.main, text.encode())

    def read_to(self, mark):
        """What came up to `mark`, which a command prints and nobody types."""
        end = time.monotonic() + LIMIT_S
        while mark not in self.seen:
            if not select.select([self.main], [], [], max(0.0, end - time.monotonic()))[0]:
                raise RuntimeError(f"{mark} did not come: {self.seen!r}")
            self.seen += os.read(self.main, 65536).decode(errors="replace")
        before, _, self.seen = self.seen.partition(mark)
        return before

    def run(self, line):
        """What a line prints."""
        self.count += 1
        self.type(f"{line}; printf '%s%s' MARK {self.count}X\n")
        return self.read_to(f"MARK{self.count}X")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)


def words_after(typist, line, key):
    """The words of the line after `key` was pressed behind it, as the shell itself reads them."""
    typist.count += 1
    mark = f"{typist.count}X"
    # Ctrl-A, Ctrl-E: to the beginning and the end of the line.
    typist.type(f"{line}{key}\x01printf '<%s>' BEGIN \x05 END{mark}\n")
    shown = typist.read_to(f"<END{mark}>")
    return re.findall(r"<([^<>]*)>", shown[shown.rindex("<BEGIN>"):])[1:]


def offered(words, line):
    """Of the words of the line those that the key has brought: all behind the ones that were complete before."""
    complete = line.split()[:-1] if not line.endswith(" ") else line.split()
    return {word.rstrip("/") for word in words[len(complete):]}  # zsh takes a folder's slash away again


def bash(prefix, folder):
    typist = Typist(["bash", "--norc", "--noprofile", "-i"], prefix, folder)
    typist.run("bind 'set completion-query-items 0'; bind 'set page-completions off'; bind 'set enable-bracketed-paste off'")
    typist.run(f"source '{prefix}/share/bash-completion/completions/muster'")
    found = {}
    for line, expected in CASES:
        # TAB completes one; Alt-* puts in all.
        found[line] = offered(words_after(typist, line.replace("'", ""), "\t" if len(expected) < 2 else "\x1b*"), line)
        if not expected and found[line] == {line.split()[-1]}:
            found[line] = set()  # nothing was put in
    typist.close()
    return found


def zsh(prefix, folder):
    typist = Typist(["zsh", "-f", "-i"], prefix, folder)
    typist.run("unsetopt PROMPT_CR PROMPT_SP BEEP; PROMPT= RPROMPT=; bindkey -e; setopt INTERACTIVE_COMMENTS")
    typist.run(f"fpath=('{prefix}/share/zsh/site-functions' $fpath); autoload -Uz compinit; compinit -u -d '{folder}/zcompdump'")
    typist.run("zstyle ':completion:*' insert-tab false; zstyle ':completion:*' menu no; LISTMAX=0")
    typist.run("all() { compstate[insert]=all; _main_complete; compstate[insert]=all }; zle -C all complete-word all; bindkey '^Xa' all")
    found = {}
    for line, expected in CASES:
        found[line] = offered(words_after(typist, line, "\t" if len(expected) < 2 else "\x18a"), line)
        if not expected and found[line] == {line.split()[-1]}:
            found[line] = set()
    typist.close()
    return found


def fish(prefix, folder):
    found = {}
    for line, _ in CASES:
        script = f"source '{prefix}/share/fish/vendor_completions.d/muster.fish'; complete -C '{line}'"
        said = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, cwd=folder, timeout=LIMIT_S,
                              env=environment(prefix, folder) | {"TERM": "xterm"})
        found[line] = {text.split("\t")[0].rstrip("/") for text in said.stdout.splitlines()}
    return found


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def check(prefix, folder):
    """(sentences about what is wrong, shells that are not here)."""
    folder = pathlib.Path(folder)
    prepare(folder)
    faults, missing = [], []
    for name, ask in SHELLS.items():
        if shutil.which(name) is None:
            missing.append(name)
            continue
        for line, got in ask(prefix, folder).items():
            expected = dict(CASES)[line]
            if got != expected:
                faults.append(f"{name}: {line!r} is completed with {sorted(got)} and not {sorted(expected)}")
    return faults, missing
