"""Five questions of somebody who has just come: their words lead from ARCHITECTURE.md to a folder, and from its README to the file.

A step is followed as a reader would: of the rows of the map exactly one has all the words, and of the README's rows and
paragraphs the first that has them names the file. No step needs a search through the code.
"""

import re

from programs import ROOT
from report import at_least, holds

TITLE = "five questions answered by path alone: ARCHITECTURE.md names the folder, the folder's README the file"
IS_TIMED = False

MAP_ROW = re.compile(r"^\| `(\w+)/` \|.*$", re.MULTILINE)

# question, the words of it that lead to the folder and then to the file, the folder, what the README names, the file that
# it lies in, and a line that stands there.
QUESTIONS = [
    ("Where is the queue cut?", ("queue", "cut"), ("queue", "cut"), "scheduler", "batch_queue.h", "src/scheduler/batch_queue.cpp",
     "BatchQueue::cut("),
    ("Where does a 429 come from?", ("429",), ("429",), "scheduler", "admission.h", "src/scheduler/admission.cpp",
     "Admission::ask("),
    ("What decides bf16?", ("decides", "bf16"), ("decides", "bf16"), "engine", "jobs/precision_choice.h", "src/jobs/precision_choice.cpp",
     "PrecisionChoice choose_precision("),
    ("Where would a new decoder family go?", ("decoder", "family"), ("new decoder family",), "engine", "decoder/llama_family.cpp",
     "src/engine/decoder/llama_family.cpp", "load_llama_family("),
    ("Who restarts a worker?", ("restarts", "worker"), ("restarts", "worker"), "coordinator", "worker_ends.cpp",
     "src/coordinator/worker_ends.cpp", "WorkerSupervisor::start_again("),
]


def has_words(text, words):
    return all(word in text.lower() for word in words)


def folders_named(words):
    """The folders of ARCHITECTURE.md whose rows have all of `words`."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    return [row.group(1) for row in MAP_ROW.finditer(page) if has_words(row.group(), words)]


def passages(text):
    """Rows of tables, points of lists and paragraphs, each as one line."""
    return [" ".join(part.split()) for part in re.split(r"\n(?=\||- |\n)", text) if part.strip()]


def first_passage(folder, words):
    text = (ROOT / "src" / folder / "README.md").read_text()
    return next((part for part in passages(text) if has_words(part, words)), "nothing")


def measure(report, arguments):
    answered = 0
    for question, map_words, page_words, folder, named, file, line in QUESTIONS:
        foreign = [word for word in map_words + page_words if word not in question.lower()]
        folders = folders_named(map_words)
        passage = first_passage(folder, page_words)
        path = ROOT / file
        is_there = path.is_file() and line in path.read_text()
        is_named = f"`{named}`" in passage
        report.raw[question] = {"folders": folders, "passage": passage, "file": file, "is_there": is_there}
        wrong = [f"{foreign} are not its words"] if foreign else []
        wrong += [] if folders == [folder] else [f"{' and '.join(map_words)} lead to {folders}, not to {folder} alone"]
        wrong += [] if is_named else [f"{folder}/README.md says first: {passage[:160]}"]
        wrong += [] if is_there else [f"{file} has no {line})"]
        answered += not wrong
        report.add(holds(question, not wrong, "; ".join(wrong) or f"src/{folder}, {named}, {line.split('(')[0]}",
                         f"{folder}, then {named}"))
    report.add(at_least("questions answered in two steps", answered, len(QUESTIONS), 0))
