"""Only engine/, worker/ and the stand-in device include torch, the pure folders include nothing that reads the world, nobody
includes a .cpp file (clang-tidy cannot say so where sources are grouped), and no header wants what only a test program defines."""

import re

from sources import code_files, module_of, report, root_from_arguments

TORCH = re.compile(r'#include [<"](ATen|c10|torch|caffe2)/')
SOURCE = re.compile(r'^\s*#\s*include\s+[<"][^>"]+\.(cpp|cc|cxx|c)[>"]')
TORCH_FOLDERS = {"engine", "worker", "standin"}
# cmake/muster_module.cmake defines them for sources of tests; ./test --long compiles each header without.
OF_TEST_PROGRAMS = re.compile(r"\bMUSTER_(BINARY|SOURCE)_DIR\b")

# Time, randomness and the outside come in as arguments, so that the simulator can replay a bad day.
PURE_FOLDERS = {"scheduler", "planner", "topology", "deploy"}
OUTSIDE = re.compile(
    r"#include [<\"](thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|fstream|filesystem|"
    r"cstdio|iostream|ctime|unistd\.h|fcntl\.h|pthread\.h|sys/|netinet/|poll\.h|boost/asio|"
    r"base/(file|unique_fd|inbox|mutex|subprocess)\.h)")
OUTSIDE_CALL = re.compile(r"_clock::now\(|std::random_device|\bgetenv\(")


def faults_in(root):
    faults = []
    for path in code_files(root):
        module, name = module_of(root, path), path.relative_to(root)
        is_test = path.stem.endswith(("_test", "_fuzz", "_bench"))
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if TORCH.search(line) and module not in TORCH_FOLDERS:
                faults.append(f"{name}:{number}: torch belongs to engine/, worker/ and the stand-in device")
            if SOURCE.search(line):
                faults.append(f"{name}:{number}: a source is compiled, not included: {line.strip()}")
            if path.suffix == ".h" and OF_TEST_PROGRAMS.search(line):
                faults.append(f"{name}:{number}: a header alone has no {OF_TEST_PROGRAMS.search(line)[0]}; use it in a .cpp file")
            if module in PURE_FOLDERS and not is_test and (OUTSIDE.search(line) or OUTSIDE_CALL.search(line)):
                faults.append(f"{name}:{number}: {module}/ is pure: {line.strip()}")
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "torch and the outside are where they belong")
