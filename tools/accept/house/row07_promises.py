"""Each row of docs/from-the-documents.md, tried on the real program (tests/documents)."""

import importlib.util

from programs import BUILD, ROOT
from report import holds

TITLE = "docs/from-the-documents.md against the program: routes, variables, flags and keys, each as its row says"
IS_TIMED = False


def measure(report, arguments):
    spec = importlib.util.spec_from_file_location("documents_run", ROOT / "tests/documents/run.py")
    documents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(documents)
    faults, counts = documents.check(BUILD, "promises", is_real=True)
    report.raw["counts"], report.raw["faults"] = counts, faults
    tried = ", ".join(f"{count} {name}" for name, count in counts.items())
    report.add(holds("what is not so", not faults and bool(counts), "; ".join(faults)[:400] or f"nothing: {tried}", "nothing"))
