"""The image and the stack of packaging/: compose.yml against the compose schema, every file that it mounts, the addresses that
its parts have for each other, the flags that it gives muster, and the versions that Dockerfile shares with the scripts.

    stack.py MUSTER [PROMTOOL]
"""

import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"

faults = []


def expect(is_right, sentence):
    if not is_right:
        faults.append(sentence)


def filled_in(text):
    """What compose makes of ${NAME:-value} where the variable is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def check_schema(compose):
    schema = json.loads((ROOT / "tests/schemas/compose-spec.json").read_text())
    for error in jsonschema.Draft7Validator(schema).iter_errors(compose):
        faults.append(f"compose.yml: {'/'.join(map(str, error.path))}: {error.message}")


def check_mounts(compose):
    mounted = set()
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                expect((PACKAGING / source).exists(), f"compose.yml: {name}: nothing is at packaging/{source}")
                mounted.add(source.removeprefix("./"))
            else:
                expect(source in compose["volumes"], f"compose.yml: {name}: the volume {source} is not declared")
        expect(":latest" not in service["image"] and ":" in service["image"], f"compose.yml: {name}: no fixed version: {service['image']}")
    dashboards = {f"grafana/{path.name}" for path in (PACKAGING / "grafana").glob("*.json")}
    expect(dashboards <= mounted, f"compose.yml: no place for {dashboards - mounted}")


def check_addresses(compose):
    """Who asks whom, in each of the files, is where that one listens."""
    services = compose["services"]
    expect(all(service["network_mode"] == "host" for service in services.values()), "compose.yml: a part has a network of its own")
    listens = {name: services[name]["command"][-1] for name in ("server", "monitor")}
    prometheus = yaml.safe_load((PACKAGING / "prometheus/prometheus.yml").read_text())
    targets = [target for job in prometheus["scrape_configs"] for config in job["static_configs"] for target in config["targets"]]
    expect(sorted(targets) == sorted(listens.values()), f"prometheus.yml asks {targets}, and muster listens on {list(listens.values())}")
    for rules in prometheus["rule_files"]:
        expect((PACKAGING / "prometheus" / rules).exists(), f"prometheus.yml: no such rules: {rules}")
    source = yaml.safe_load((PACKAGING / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    address = next(word.split("=")[1] for word in services["prometheus"]["command"] if word.startswith("--web.listen-address="))
    expect(source["url"] == f"http://{address}", f"Grafana asks {source['url']}, and Prometheus listens on {address}")
    provider = yaml.safe_load((PACKAGING / "grafana/provisioning/dashboards/muster.yml").read_text())["providers"][0]
    folder = provider["options"]["path"]
    places = [volume.split(":")[1] for volume in services["grafana"]["volumes"] if volume.split(":")[0].endswith(".json")]
    expect(all(place.startswith(folder + "/") for place in places), f"Grafana looks for dashboards in {folder}, and they are {places}")


def check_commands(compose, muster):
    """The program's own parser takes the words of each of its services."""
    for name, service in compose["services"].items():
        if not service["image"].startswith("muster:"):
            continue
        done = subprocess.run([muster, *service["command"], "--help"], capture_output=True, text=True)
        expect(done.returncode == 0, f"compose.yml: {name}: {done.stderr.strip()}")


def check_dockerfile(compose):
    text = (PACKAGING / "Dockerfile").read_text()
    setup = (ROOT / "tools/setup.sh").read_text()
    version = re.search(r"^project\(muster VERSION ([0-9.]*)", (ROOT / "CMakeLists.txt").read_text(), flags=re.M)[1]
    torch = re.search(r"^torch_version=(\S+)", setup, flags=re.M)[1]
    expect(re.findall(r"torch==([0-9.]+)", text) == [torch, torch], f"Dockerfile: torch is {torch} in tools/setup.sh")
    for part in re.search(r"^torch_cpu_parts=\((.*)\)", setup, flags=re.M)[1].split():
        expect(part in text, f"Dockerfile: it lacks {part} of tools/setup.sh")
    expect(f"ARG TARBALL=muster-{version}-linux-x86_64" in text, f"Dockerfile: the tarball is muster-{version}-linux-x86_64")
    images = {service["image"] for service in compose["services"].values() if service["image"].startswith("muster:")}
    expect(images == {f"muster:{version}"}, f"compose.yml: {images}, and this is {version}")
    expect(f"-t muster:{version} " in text, f"Dockerfile: its own commands make another version than {version}")
    listen = re.search(r"MUSTER_LISTEN=\S+:(\d+)", text)[1]
    expect(f"EXPOSE {listen}" in text and f"127.0.0.1:{listen}/readyz" in text, "Dockerfile: three ports that are not one")


def main():
    compose = yaml.safe_load(filled_in((PACKAGING / "compose.yml").read_text()))
    check_schema(compose)
    check_mounts(compose)
    check_addresses(compose)
    check_commands(compose, sys.argv[1])
    check_dockerfile(compose)
    if len(sys.argv) > 2:
        done = subprocess.run([sys.argv[2], "check", "config", PACKAGING / "prometheus/prometheus.yml"], capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
