"""The house by the project's own checks: sizes, READMEs, arrows, interfaces, comments."""

import subprocess
import sys

from programs import ROOT
from report import at_least, at_most, holds

TITLE = "the house: sizes of files and functions, READMEs, arrows, interfaces, comments in sources"
IS_TIMED = False

CHECKS = ["arrows", "comments", "docs", "includes", "interfaces", "names", "sizes", "targets"]
FILE_LINES_MOST = 277  # 95th percentile of src/'s production files
COMMENTS_LEAST = 8.0   # per cent of the lines of sources


def measure(report, arguments):
    for check in CHECKS:
        run = subprocess.run([sys.executable, "-B", ROOT / "tests" / "tidy" / f"check_{check}.py", ROOT],
                             capture_output=True, text=True)
        lines = run.stdout.strip().splitlines()
        report.raw[check] = lines
        report.add(holds(f"check_{check}", run.returncode == 0, lines[0] if run.returncode == 0 else f"{len(lines)} faults: {lines[0]}",
                         "no fault"))
    sys.path.insert(0, str(ROOT / "tests" / "tidy"))
    import check_comments
    import check_sizes
    from sources import code_files
    product = [path for path in code_files(ROOT) if path.is_relative_to(ROOT / "src") and "testdata" not in path.parts and
               not path.stem.endswith(check_comments.TEST)]
    lengths = sorted(len(path.read_text().splitlines()) for path in product)
    functions = sorted(end - start + 1 for path in product for start, end in check_sizes.functions(path.read_text().splitlines()))
    report.raw["files"], report.raw["functions"] = len(lengths), len(functions)
    report.add(at_most("95th percentile of the lines of a file", lengths[int(0.95 * len(lengths))], FILE_LINES_MOST, 0))
    report.add(at_most("99th percentile of the lines of a function", functions[int(0.99 * len(functions))], check_sizes.FUNCTION_LINES_MAX, 0))
    share = 100 * check_comments.share_of(path.read_text() for path in check_comments.sources_in(ROOT))
    report.add(at_least("comments in sources", share, COMMENTS_LEAST, 1, " %"))
