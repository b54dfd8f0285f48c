"""Writes recorded_pairs.json: what the docker client on the PATH asks a daemon for, for the device words of each set of
devices that muster can be given. It is read where no such client is.

    record_pairs.py [YYYY-MM-DD]"""

import datetime
import json
import subprocess
import sys

from client import HERE, FakeDaemon, client_version, devices_asked_for, is_recent

GPU = ["GPU-5e6f0cd1-0000-0000-0000-00000000000" + str(i) for i in range(2)]
MIG = "MIG-11111111-2222-3333-4444-555555555555"
ROCM_RIGHTS = ["--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined"]

# What each set of words shows. The first two are the mistakes of others, kept to be told apart.
WORDS = {
    "two indices without quotes: one device and a count": ["--gpus", "device=0,2"],
    "all": ["--gpus", "all"],
    "one index": ["--gpus", "device=2"],
    "some indices": ["--gpus", '"device=0,2"'],
    "all of four, by index": ["--gpus", '"device=0,1,2,3"'],
    "one UUID": ["--gpus", f"device={GPU[0]}"],
    "two UUIDs": ["--gpus", f'"device={GPU[0]},{GPU[1]}"'],
    "a MIG slice": ["--gpus", f"device={MIG}"],
    "one CDI device": ["--device", "nvidia.com/gpu=0"],
    "a CDI slice beside another": ["--device", "nvidia.com/gpu=0:0", "--device", "nvidia.com/gpu=0:1"],
    "an AMD CDI device": ["--device", "amd.com/gpu=1"],
    "two AMD render nodes": ["--device", "/dev/kfd", "--device", "/dev/dri/renderD128", "--device",
                             "/dev/dri/renderD130", "--group-add", "video", *ROCM_RIGHTS],
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
