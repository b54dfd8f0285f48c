"""Every C++ file of src/, tests/ and benchmarks/ is as clang-format 14 writes it."""

import subprocess

from sources import CODE, report, root_from_arguments, tracked_files

if __name__ == "__main__":
    root = root_from_arguments()
    files = [str(p) for p in tracked_files(root) if p.suffix in CODE]
    checked = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *files], cwd=root,
                             capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in checked.stderr.splitlines() if "error:" in line})
    report([f"{name}: clang-format-14 -i would change it" for name in wrong]
           or ([checked.stderr] if checked.returncode else []), f"{len(files)} files are formatted")
