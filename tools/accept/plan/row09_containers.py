"""Which devices a container gets: the words of `muster deploy container` given to a real docker client, whose requests a
stand-in for the daemon keeps; compose and Kubernetes texts against their schemas."""

import json
import os
import re
import shlex
import subprocess
import sys

from programs import BUILD, DEPS, MUSTER, ROOT, TESTS, scratch
from report import holds, skipped

sys.path.insert(0, str(ROOT / "stand_ins" / "fake_docker"))
from client import FakeDaemon, client_version, devices_asked_for, is_recent  # noqa: E402

TITLE = "Containers on exactly the chosen devices, by a real docker client; compose and Kubernetes texts"
IS_TIMED = False

PEERS = ("jsonschema", "pyyaml", "kubernetes-validate")
KUBERNETES_VERSIONS = ("1.32.0", "1.37.0")
MODEL = "org/model"
APIS = ("tgi", "tei", "vllm")

# The driver of stand_ins/fake_docker/fake_driver.cpp: places 0 to 3 in PCI order, the last GPU of another model.
GPU = [f"GPU-{place:08x}-0000-0000-0000-000000000000" for place in range(4)]
MIG = ["MIG-11111111-2222-3333-4444-555555555555", "MIG-66666666-7777-8888-9999-aaaaaaaaaaaa"]
RENDER = ["/dev/dri/renderD128", "/dev/dri/renderD130"]

# name: (--devices, the ids that a container must be given, in the order the server must number them)
DEVICE_SETS = {
    "one": ("cuda:1", [GPU[1]]),
    "some": ("cuda:0,cuda:2", [GPU[0], GPU[2]]),
    "some in another order": ("cuda:2,cuda:0", [GPU[2], GPU[0]]),
    "four in another order": ("cuda:0,cuda:2,cuda:1,cuda:3", [GPU[0], GPU[2], GPU[1], GPU[3]]),
    "all": ("cuda", GPU),
    "a count": ("2xcuda", GPU[:2]),
    "a UUID": (GPU[3], [GPU[3]]),
    "UUIDs": (f"{GPU[3]},{GPU[1]}", [GPU[3], GPU[1]]),
    "a MIG slice": (MIG[0], MIG[:1]),
    "MIG slices": (",".join(MIG), MIG),
    "a CDI device": ("nvidia.com/gpu=1", ["nvidia.com/gpu=1"]),
    "CDI devices": ("nvidia.com/gpu=2,nvidia.com/gpu=0", ["nvidia.com/gpu=2", "nvidia.com/gpu=0"]),
    "an AMD CDI device": ("amd.com/gpu=1", ["amd.com/gpu=1"]),
    "an AMD GPU": (RENDER[0], RENDER[:1]),
    "AMD GPUs": (",".join(RENDER), RENDER),
    "none": ("none", []),
}


def environment_with_gpus():
    """The environment of a machine with four GPUs."""
    folder = BUILD / "fake_driver"
    if not (folder / "libnvidia-ml.so.1").exists():
        folder = scratch("fake_driver")
        folder.mkdir(exist_ok=True)
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1",
                        ROOT / "stand_ins" / "fake_docker" / "fake_driver.cpp"], check=True)
    # MUSTER_BUILD is the accept command's own: muster refuses variables that it does not know.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return {**inherited, "LD_LIBRARY_PATH": str(folder)}


def deploy(environment, api, devices, *more):
    command = [str(MUSTER), "deploy", "container", "--api", api, "--model", MODEL, "--devices", devices]
    if api == "tei" and ("amd" in devices or "/dev" in devices):
        command += ["--image", "example/tei-for-amd:1"]  # none is published
    done = subprocess.run([*command, *more], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def place_of(identity):
    """Where the device is among its kind, in PCI order: what the container runtime sorts by."""
    if identity in GPU:
        return GPU.index(identity)
    if identity in RENDER:
        return RENDER.index(identity)
    return int(identity.partition("=")[2]) if "=" in identity else 0


def numbered_inside(identities, environment):
    """The devices as the server numbers them: those it is given, in PCI order, through the variables that CUDA and ROCm
    read. Written apart from muster's own code."""
    seen = sorted(identities, key=place_of)
    variables = dict(entry.partition("=")[::2] for entry in environment)
    visible = variables.get("CUDA_VISIBLE_DEVICES", variables.get("HIP_VISIBLE_DEVICES"))
    if visible is None:
        return seen
    if "CUDA_VISIBLE_DEVICES" in variables and variables.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        return ["CUDA sorts by speed"]
    return [seen[int(number)] for number in visible.split(",")]


def identities_in(asked):
    """The devices in what a client asked for; None where it asked for a number of devices or for all."""
    found = []
    for request in asked["requests"]:
        if request["count"] != 0:
            return None
        found += request["ids"]
    return found + [name for name in asked["files"] if name != "/dev/kfd"]


def device_words(command):
    """The words of a `docker run` that say which devices it gets, in their order; their groups differ by machine."""
    flags = ("--gpus", "--device", "--cap-add", "--security-opt")
    words = []
    for flag, value in zip(command, command[1:]):
        words += [flag, value] if flag in flags else []
    return words


def check_container(wanted, asked, environment):
    """What is wrong with one container's devices; None if nothing is."""
    found = identities_in(asked)
    if found is None or sorted(found) != sorted(wanted):
        return f"wanted {wanted}, asked for {found}"
    if numbered_inside(found, environment) != wanted:
        return f"wanted the order {wanted}, inside it is {numbered_inside(found, environment)}"
    is_amd_file = any(name in RENDER for name in wanted)
    if is_amd_file != ("/dev/kfd" in asked["files"]):
        return "/dev/kfd goes with render nodes and with nothing else"
    if not wanted and "NVIDIA_VISIBLE_DEVICES=void" not in environment:
        return "the image would ask for every GPU"
    return None


def wanted_of(plan, identities):
    """The devices each container of a plan must get: all in one, or one each."""
    containers = plan["containers"]
    return [identities] if len(containers) == 1 else [[identity] for identity in identities]


def measure_devices(report, environment):
    """Every API with every set of devices through the real client."""
    faults, count = [], 0
    for api in APIS:
        for name, (devices, identities) in DEVICE_SETS.items():
            plan = json.loads(deploy(environment, api, devices, "--dry-run", "--json"))
            wanted = wanted_of(plan, identities)
            if len(wanted) != len(plan["containers"]):
                faults.append(f"{api}, {name}: {len(plan['containers'])} containers")
            with FakeDaemon() as daemon:
                for container in plan["containers"]:
                    subprocess.run(container["command"], check=True, capture_output=True, env=daemon.environment)
                for creation, devices_wanted in zip(daemon.created(), wanted, strict=True):
                    body = creation["body"]
                    fault = check_container(devices_wanted, devices_asked_for(body), body["Env"] or [])
                    faults += [f"{api}, {name}: {fault}"] if fault else []
                    count += 1
    report.raw["faults_by_the_client"] = faults
    report.add(holds("containers whose device requests hold exactly the wanted devices, in the wanted order inside",
                     not faults, f"{count - len(faults)} of {count} ({len(DEVICE_SETS)} sets, {len(APIS)} servers)"
                     + (f"; {faults[0]}" if faults else ""), "all"))


def measure_recorded(report, environment):
    """The same with what a client said once."""
    recorded = json.loads((ROOT / "stand_ins" / "fake_docker" / "recorded_pairs.json").read_text())
    asked_by_words = {tuple(device_words(pair["words"])): pair["asked"] for pair in recorded["pairs"]}
    faults = []
    for name, (devices, identities) in DEVICE_SETS.items():
        plan = json.loads(deploy(environment, "vllm", devices, "--dry-run", "--json"))
        asked = asked_by_words.get(tuple(device_words(plan["containers"][0]["command"])))
        faults += [name] if asked is None or identities_in(asked) != wanted_of(plan, identities)[0] else []
    report.raw["faults_by_recorded_pairs"] = faults
    count = len(DEVICE_SETS)
    report.add(holds(f"device words beside those recorded with {recorded['client']} on {recorded['recorded']}", not faults,
                     f"{count - len(faults)} of {count}" + (f"; not {faults}" if faults else ""), "all the same"))


def measure_dry_run(report, environment):
    """The printed line, read by a shell, asks for what a real start asks for; then status, logs and stop."""
    options = ["--env", "NOTE=it's $5 \"now\"", "--volume", "cache:/data", "--", "--max-batch-tokens", "512"]
    with FakeDaemon() as daemon:
        def run(words):
            with_gpus = {**environment, **{name: daemon.environment[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}}
            return subprocess.run(words, capture_output=True, text=True, env=with_gpus)
        deploy_words = [str(MUSTER), "deploy", "container", "--api", "tei", "--model", MODEL, "--devices", "cuda:3,cuda:0"]
        printed = run([*deploy_words, "--dry-run", *options]).stdout
        was_quiet = not daemon.created()
        shell = run(["sh", "-ec", printed])
        by_shell = daemon.created()
        name = "muster-tei-model"
        stopped = run([str(MUSTER), "deploy", "stop", name])
        started = run([*deploy_words, *options])
        for_real = daemon.created()[len(by_shell):]
        status = json.loads(run([str(MUSTER), "deploy", "status", name, "--json"]).stdout)
        logs = run([str(MUSTER), "deploy", "logs", f"{name}-0"])
        last = run([str(MUSTER), "deploy", "stop", name])
        left = json.loads(run([str(MUSTER), "deploy", "status", "--json"]).stdout)
    report.raw["dry_run"] = printed
    is_same = was_quiet and shell.returncode == 0 and len(for_real) == 2 and by_shell == for_real
    report.add(holds("--dry-run, its lines read by a shell, beside the real start", is_same,
                     f"{len(by_shell)} containers, the same requests" if is_same else shell.stderr + started.stderr,
                     "the same, and nothing run before"))
    states = [container["state"] for container in status["containers"]]
    is_whole = (started.returncode == stopped.returncode == last.returncode == 0 and states == ["running"] * 2
                and "a line of the log" in logs.stdout and not left["containers"])
    report.add(holds("start, status, logs, stop through the real client", is_whole,
                     f"{states}, log of {len(logs.stdout)} bytes, {len(left['containers'])} left"))


def install_peers():
    try:
        import jsonschema, kubernetes_validate, yaml  # noqa: F401, E401
    except ImportError:
        subprocess.run([DEPS / "peers" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        *PEERS], check=True)


def measure_texts(report, environment):
    install_peers()
    import jsonschema
    import kubernetes_validate
    import yaml
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    odd = ["--env", 'ODD=yes: "$HOME" #1 \\n é', "--env", "NUMBER=080", "--volume", "/srv/a b:/x:ro", "--", "--on", "off"]
    compose_faults, kubernetes_faults, objects, files = [], [], 0, 0
    for api in APIS:
        for name, (devices, identities) in DEVICE_SETS.items():
            text = deploy(environment, api, devices, "--format", "compose", *odd)
            compose = yaml.safe_load(text)
            files += 1
            compose_faults += [f"{api}, {name}: {e.message}" for e in validator.iter_errors(compose)]
            found = []
            for service in compose["services"].values():
                if service["environment"]["NUMBER"] != "080" or service["command"][-2:] != ["--on", "off"]:
                    compose_faults.append(f"{api}, {name}: a text is read as something else")
                found += [i.split(":")[0] for i in service.get("devices", []) if "kfd" not in i]
                for reservation in service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", []):
                    found += reservation["device_ids"]
            if sorted(found) != sorted(identities):
                compose_faults.append(f"{api}, {name}: {found}")
            if "MIG" in name:
                devices = f"{len(identities)}xmig-1g.5gb"
            text = deploy(environment, api, devices, "--format", "kubernetes", *odd)
            for thing in yaml.safe_load_all(text):
                objects += 1
                for version in KUBERNETES_VERSIONS:
                    try:
                        kubernetes_validate.validate(thing, version, strict=True)
                    except kubernetes_validate.ValidationError as error:
                        kubernetes_faults.append(f"{api}, {name}, {version}: {error.message}")
    report.raw["compose_faults"], report.raw["kubernetes_faults"] = compose_faults, kubernetes_faults
    report.add(holds("compose files that the compose-spec schema takes, with exactly the wanted devices",
                     not compose_faults, f"{files} files, {len(compose_faults)} faults {' '.join(compose_faults[:1])}", "all"))
    report.add(holds(f"Kubernetes objects that kubernetes-validate takes, strictly ({' and '.join(KUBERNETES_VERSIONS)})",
                     not kubernetes_faults,
                     f"{objects} objects, {len(kubernetes_faults)} faults {' '.join(kubernetes_faults[:1])}", "all"))


def measure_numbering(report):
    """The property test beside the code: every subset of eight GPUs in several orders."""
    test = TESTS / "sanitized" / "bin" / "deploy_test"
    done = subprocess.run([test, "--gtest_filter=DeviceNumbering*"], capture_output=True, text=True)
    report.add(holds("host number -> container number -> CUDA number and back, 255 subsets of 8 GPUs in 6 orders each",
                     done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout,
                     "the same device" if done.returncode == 0 else done.stdout[-300:], "the same device"))


def measure_documents(report):
    """Every name of the five documents has its row in the table of its document."""
    names = json.loads((ROOT / "tools" / "accept" / "plan" / "document_names.json").read_text())
    text = (ROOT / "docs" / "from-the-documents.md").read_text()
    parts = re.split(r"^## Document (\d)", text, flags=re.MULTILINE)
    tables = dict(zip(parts[1::2], parts[2::2]))
    missing = [f"{name} of document {number}" for number, listed in names.items()
               for name in listed if f"`{name}`" not in tables.get(number, "")]
    report.raw["names_without_a_row"] = missing
    count = sum(map(len, names.values()))
    report.add(holds("names of the five documents that have a row in docs/from-the-documents.md", not missing,
                     f"{count - len(missing)} of {count}" + (f"; not {missing[0]}" if missing else ""), "all"))


def measure(report, arguments):
    environment = environment_with_gpus()
    version = client_version()
    report.raw["client"] = version
    if is_recent(version):
        report.raw["client_note"] = "a real client, a stand-in for the daemon"
        measure_devices(report, environment)
        measure_dry_run(report, environment)
    else:
        report.add(skipped("through a real docker client", f"none of version 28 or later is on the PATH: {version}"))
    measure_recorded(report, environment)
    measure_numbering(report)
    measure_texts(report, environment)
    measure_documents(report)
