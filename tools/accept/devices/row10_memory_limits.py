"""Memory limits: trees of cgroups against a count of our own, a real cgroup, and memory that a GPU shares."""

import os
import pathlib
import random
import subprocess

from devices.machine_trees import Tree, device, last_line, recording
from programs import BUILD, ROOT, TESTS, scratch
from report import holds, skipped

TITLE = "memory limits: nested cgroups v1 and v2, page cache given back, swap not counted, unified memory promised once"
IS_TIMED = False

TREES = 120
MEMORY_KIB = 64 << 20  # 64 GiB of machine
AVAILABLE_KIB = 48 << 20
NO_LIMIT = 9223372036854771712
REAL = pathlib.Path("/sys/fs/cgroup/memory")


def write_group(tree, folder, is_v2, limit, used, cache):
    if is_v2:
        tree.write(f"{folder}/memory.max", "max" if limit is None else limit)
        tree.write(f"{folder}/memory.current", used)
        tree.write(f"{folder}/memory.swap.max", 4096)  # swap is not memory
        tree.write(f"{folder}/memory.stat", f"anon {used - cache}\nfile {cache}\ninactive_file {cache}\nactive_file 0")
    else:
        tree.write(f"{folder}/memory.limit_in_bytes", NO_LIMIT if limit is None else limit)
        tree.write(f"{folder}/memory.usage_in_bytes", used)
        tree.write(f"{folder}/memory.memsw.limit_in_bytes", 4096)
        tree.write(f"{folder}/memory.stat", f"cache 1\ninactive_file 1\ntotal_cache {cache}\ntotal_inactive_file {cache}")


def constructed(rng, index):
    """A machine with a chain of groups; returns it, what it is, and the limit and what is left by our own count."""
    is_v2, in_container, depth = rng.random() < 0.5, rng.random() < 0.5, rng.randint(1, 5)
    tree = Tree("cgroup-tree")
    tree.write("proc/meminfo", f"MemTotal: {MEMORY_KIB} kB\nMemFree: 1000 kB\nMemAvailable: {AVAILABLE_KIB} kB\nSwapTotal: 9 kB")
    mount = "/sys/fs/cgroup" if is_v2 else "/sys/fs/cgroup/memory"
    path = "".join(f"/group{level}" for level in range(depth))
    outer = "/docker/abc" if in_container and not is_v2 else ""
    tree.write("proc/self/cgroup", f"0::{path}" if is_v2 else f"7:cpu:/elsewhere\n4:memory:{outer}{path}\n0::/")
    kind = "cgroup2 cgroup2 rw" if is_v2 else "cgroup cgroup rw,memory"
    lines = [f"30 24 0:26 {outer or '/'} {mount} rw - {kind}"]
    if not is_v2:
        # Another container's groups, mounted beside: they limit it, not this process.
        lines.append("31 24 0:26 /docker/abcdef /other rw - cgroup cgroup rw,memory")
        write_group(tree, "/other", False, 1 << 20, 1 << 19, 0)
    tree.write("proc/self/mountinfo", "\n".join(lines))
    limits, lefts = [], []
    for level in range(depth + 1):
        folder = mount + "".join(f"/group{one}" for one in range(level))
        if level == 0 and is_v2:
            continue  # the root of version 2 has no limit
        limit = rng.choice([None, rng.randrange(1 << 30, 80 << 30)])
        used = rng.randrange(1 << 20, 1 << 30)
        cache = rng.randrange(0, used)
        write_group(tree, folder, is_v2, limit, used, cache)
        if limit is not None:
            limits.append(limit)
            lefts.append(limit - (used - cache))
    limit = min(limits, default=None)
    if limit is not None and limit >= MEMORY_KIB * 1024:
        limit = None  # a limit above what is there limits nothing
    left = min(lefts + [AVAILABLE_KIB * 1024])
    return tree, f"v{2 if is_v2 else 1}, {depth} deep{', in a container' if outer else ''}", limit, left


def host_memory(root, before=None):
    with recording(root, "memory", before) as out:
        readings = device(last_line(out), "cpu:0")["readings"]
    return readings.get("host_memory_limit_bytes"), readings.get("host_memory_available_bytes")


def measure_trees(report, seed):
    rng = random.Random(seed)
    wrong, kinds = [], []
    for index in range(TREES):
        tree, what, limit, left = constructed(rng, index)
        found = host_memory(tree.root)
        kinds.append(what)
        if found != (limit, left):
            wrong.append({"tree": what, "expected": [limit, left], "found": found})
    report.raw["trees"] = {"seed": seed, "kinds": kinds, "wrong": wrong}
    report.add(holds(f"{TREES} constructed trees whose tightest limit and what is left differ from our count",
                     not wrong, str(len(wrong)) if not wrong else f"{len(wrong)}: {wrong[0]}", "0"))


def numbers(path):
    return dict((name, int(value)) for name, value in (line.split() for line in path.read_text().splitlines()))


def measure_real_group(report):
    """A group of this machine: 256 MiB, a group below it without a limit, page cache and a process of 64 MiB in it."""
    outer, inner = REAL / "muster-accept", REAL / "muster-accept" / "inner"
    try:
        inner.mkdir(parents=True)
    except OSError as error:
        report.add(skipped("a real cgroup of version 1", f"cannot be made here: {error.strerror}"))
        return
    try:
        (outer / "memory.limit_in_bytes").write_text(str(256 << 20))
        enter = lambda: (inner / "cgroup.procs").write_text(str(os.getpid()))
        cached = scratch("cached.bin")
        cached.unlink(missing_ok=True)  # its pages are charged to the group that writes it
        holder = subprocess.Popen(["python3", "-c", f"import os; data = bytearray(64 << 20); file = open({str(cached)!r}, 'wb'); "
                                   "file.write(bytes(64 << 20)); file.flush(); os.fsync(file.fileno()); "
                                   "print('ready', flush=True); input()"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        try:
            holder.stdout.readline()
            limit, left = host_memory("/", enter)
            stat, used = numbers(outer / "memory.stat"), int((outer / "memory.usage_in_bytes").read_text())
            cache = stat["total_inactive_file"]
        finally:
            holder.communicate("\n", timeout=20)
        report.raw["real_group"] = {"limit": limit, "left": left, "usage_afterwards": used, "stat_afterwards": stat}
        report.add(holds("a real group of version 1 below one of 256 MiB: the limit", limit == 256 << 20, f"{limit:.0f}",
                         str(256 << 20)))
        # muster itself lives in the group while it looks, and is gone when the usage is read again.
        own = 24 << 20
        expected = (256 << 20) - (used - cache)
        report.add(holds("64 MiB of page cache in it count as left, 64 MiB that a process holds do not",
                         left is not None and cache >= 60 << 20 and expected - own <= left <= expected,
                         f"{(left or 0) / 2**20:.1f} MiB left; afterwards {used / 2**20:.1f} in use, {cache / 2**20:.1f} of it cache",
                         f"{(expected - own) / 2**20:.1f} to {expected / 2**20:.1f} MiB (muster's own 24 MiB at most)"))
    finally:
        scratch("cached.bin").unlink(missing_ok=True)
        inner.rmdir()
        outer.rmdir()


def measure_unified(report):
    for name, set_aside in (("strix_halo", 512 << 20), ("phoenix", 1 << 30)):
        with recording(ROOT / "src" / "hw" / "testdata" / name, "unified") as out:
            readings = device(last_line(out), "rocm:0")["readings"]
        size, free = readings["memory_size_bytes"], readings["memory_free_bytes"]
        available = 4194304 << 10  # of the tree's /proc/meminfo; GTT has 7 GiB free
        expected = (set_aside + (8 << 30), set_aside - (256 << 20) + available)
        report.raw[name] = {"size": size, "free": free, "expected": expected}
        report.add(holds(f"{name}: size and free memory of its GPU", (size, free) == expected, f"{size:.0f}, {free:.0f}",
                         f"{expected[0]}, {expected[1]}: no more than the machine has left"))
    test = next((folder / "bin" / "topology_test" for folder in (TESTS / "sanitized", BUILD)
                 if (folder / "bin" / "topology_test").exists()), None)
    if test is None:
        report.add(skipped("the planner's budgets of GPU and CPU", "topology_test is not built: ./test builds it"))
        return
    done = subprocess.run([test, "--gtest_filter=MachineFrom.*"], capture_output=True, text=True)
    report.add(holds("GPU and CPU budgets of a plan on unified memory together within what is available (topology_test)",
                     done.returncode == 0 and "MachineFrom.PromisesUnifiedMemoryOnce" in done.stdout,
                     "passed" if done.returncode == 0 else done.stdout[-300:], "passed"))


def measure(report, arguments):
    measure_trees(report, arguments.seed)
    measure_real_group(report)
    measure_unified(report)
