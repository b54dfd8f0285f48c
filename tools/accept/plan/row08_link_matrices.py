"""The link matrices of public issues: which GPUs belong together, and in which order a pipeline visits them."""

import json
import re
import subprocess

from programs import BUILD, ROOT, TESTS
from report import holds

TITLE = "Topology: the NVLink pairs of the matrices in public issues"
IS_TIMED = False

MATRICES = ROOT / "src" / "topology" / "testdata"
GPUS = {"k8s_device_plugin_436": "A100-PCIE-80G", "k8s_device_plugin_546": "A100-PCIE-80G",
        "k8s_device_plugin_1193": "RTXA6000-48G", "go_gpuallocator_17": "RTX4090-24G", "vllm_7958": "RTX3090-24G"}
ORDER_7958 = [[0, 2], [1, 3]]


def nvlink_pairs(path):
    """Read anew, without our parser: the pairs (a, b) with an NV# between them."""
    pairs = set()
    for line in path.read_text().splitlines():
        row = re.match(r"GPU(\d+)\t(.*)", line)
        if row:
            pairs |= {tuple(sorted((int(row[1]), column))) for column, label in enumerate(row[2].split("\t"))
                      if re.fullmatch(r"NV\d+", label.strip())}
    return pairs


def stages(name, size):
    done = subprocess.run([BUILD / "bin/planner_bench", "groups", MATRICES / f"{name}.txt", GPUS[name], str(size)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["stages"]


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "planner_bench"], check=True,
                   stdout=subprocess.DEVNULL)
    for name in GPUS:
        pairs, groups = nvlink_pairs(MATRICES / f"{name}.txt"), stages(name, 2)
        report.raw[name] = {"nvlink": sorted(pairs), "stages_of_two": groups}
        shown = " ".join(f"{a}-{b}" for a, b in groups)
        devices = sorted(device for group in groups for device in group)
        whole = devices == list(range(len(devices))) and len(devices) in (4, 8)
        wanted = " ".join(f"{a}-{b}" for a, b in sorted(pairs))
        report.add(holds(f"{name}: groups of two", whole and pairs <= {tuple(group) for group in groups}, shown,
                         f"with {wanted}" if pairs else "every GPU once: there is no NVLink"))
    report.add(holds("vllm_7958: the order of two stages of two", stages("vllm_7958", 2) == ORDER_7958,
                     ",".join(str(d) for group in stages("vllm_7958", 2) for d in group), "0,2,1,3"))
    fours = stages("go_gpuallocator_17", 4)
    report.add(holds("go_gpuallocator_17: groups of four keep to a socket", fours == [[0, 1, 2, 3], [4, 5, 6, 7]],
                     json.dumps(fours), "0-3 and 4-7"))
    done = subprocess.run([TESTS / "sanitized" / "bin" / "topology_test", "--gtest_filter=PickDevices.*"], capture_output=True, text=True)
    report.add(holds("k8s_device_plugin_1193: pods of one GPU leave bridged pairs whole", done.returncode == 0 and
                     "[  PASSED  ] 1 test" in done.stdout, "PickDevices.KeepsPairsWholeForTheNext"))
