"""What the documents let people type, given to the real program (tests/documents)."""

import importlib.util

from programs import BUILD, ROOT
from report import holds

TITLE = "documents 1, 3 and 4: their own .env, scenarios, files and command lines run, or one sentence says what holds instead"
IS_TIMED = False


def measure(report, arguments):
    spec = importlib.util.spec_from_file_location("documents_run", ROOT / "tests/documents/run.py")
    documents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(documents)
    faults, counts = documents.check(BUILD, "blocks", is_real=True)
    report.raw["counts"], report.raw["faults"] = counts, faults
    tried = ", ".join(f"{count} {name}" for name, count in counts.items())
    report.add(holds("what is not so", not faults and bool(counts), "; ".join(faults)[:400] or f"nothing: {tried}", "nothing"))
