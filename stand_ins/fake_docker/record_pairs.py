"""Writes recorded_pairs.json: what the docker client on the PATH asks a daemon for, for the device words of each set of
devices that muster can be given. It is read where no such client is.

    record_pairs.py [YYYY-MM-DD]"""

import datetime
import json
import subprocess
import sys

from client import HERE, FakeDaemon, client_version, devices_asked_for, is_recent

# As stand_ins/fake_docker/fake_driver.cpp names its GPUs.
GPU = [f"GPU-{place:08x}-0000-0000-0000-000000000000" for place in range(4)]
MIG = ["MIG-11111111-2222-3333-4444-555555555555", "MIG-66666666-7777-8888-9999-aaaaaaaaaaaa"]
RENDER = ["/dev/dri/renderD128", "/dev/dri/renderD130"]
ROCM_RIGHTS = ["--group-add", "video", "--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined"]


def gpus(*identities):
    ids = ",".join(identities)
    return ["--gpus", f'"device={ids}"' if len(identities) > 1 else f"device={ids}"]


def files(*names):
    return [word for name in names for word in ("--device", name)]


# What each set of words shows. The first two are mistakes of others, kept to be told apart.
WORDS = {
    "two indices without quotes: one device and a count": ["--gpus", "device=0,2"],
    "all": ["--gpus", "all"],
    "an index": gpus("2"),
    "indices": gpus("0", "2"),
    "one GPU": gpus(GPU[1]),
    "the last GPU": gpus(GPU[3]),
    "the first and the third": gpus(GPU[0], GPU[2]),
    "the third and the first": gpus(GPU[2], GPU[0]),
    "the fourth and the second": gpus(GPU[3], GPU[1]),
    "the first two": gpus(GPU[0], GPU[1]),
    "all four": gpus(*GPU),
    "all four in another order": gpus(GPU[0], GPU[2], GPU[1], GPU[3]),
    "a MIG slice": gpus(MIG[0]),
    "a CDI device": files("nvidia.com/gpu=1"),
    "CDI devices": files("nvidia.com/gpu=2", "nvidia.com/gpu=0"),
    "CDI slices": files("nvidia.com/gpu=0:0", "nvidia.com/gpu=0:1"),
    "an AMD CDI device": files("amd.com/gpu=1"),
    "an AMD GPU": files("/dev/kfd", RENDER[0]) + ROCM_RIGHTS,
    "AMD GPUs": files("/dev/kfd", *RENDER) + ROCM_RIGHTS,
    "none": [],
}


def main():
    version = client_version()
    if not is_recent(version):
        sys.exit(f"a docker client of version 28 or later is needed: {version}")
    day = sys.argv[1] if len(sys.argv) > 1 else datetime.date.today().isoformat()
    pairs = []
    with FakeDaemon() as daemon:
        for number, (what, words) in enumerate(WORDS.items()):
            command = ["docker", "run", "--detach", "--name", f"pair-{number}", *words, "fake/image:1"]
            subprocess.run(command, check=True, capture_output=True, env=daemon.environment)
            asked = devices_asked_for(daemon.created()[-1]["body"])
            pairs.append({"what": what, "words": words, "asked": asked})
    lines = ",\n  ".join(json.dumps(pair) for pair in pairs)
    (HERE / "recorded_pairs.json").write_text(
        f'{{"client": "docker {version}", "recorded": "{day}", "pairs": [\n  {lines}\n]}}\n')


if __name__ == "__main__":
    main()
