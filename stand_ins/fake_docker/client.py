"""The real docker client against the fake daemon: what it asks a daemon for, for given words."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VERSION_LEAST = 28


def client_version():
    """The version of the docker client on the PATH, such as "28.2.2"; None without one."""
    if shutil.which("docker") is None:
        return None
    said = subprocess.run(["docker", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+\.[\d.]+)", said)
    return found[1] if found else None


def is_recent(version):
    return version is not None and int(version.split(".")[0]) >= VERSION_LEAST


class FakeDaemon:
    """Runs while it is open; `environment` leads a client to it."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-")
        socket_path = pathlib.Path(self.folder.name) / "docker.sock"
        self.log = pathlib.Path(self.folder.name) / "created.jsonl"
        self.process = subprocess.Popen([sys.executable, "-B", HERE / "fake_daemon.py", socket_path, self.log],
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("the fake daemon does not start")
        self.environment = {**os.environ, "DOCKER_HOST": f"unix://{socket_path}", "DOCKER_CONFIG": self.folder.name}
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def created(self):
        """What was asked to be created, in order: [{"name", "body"}]."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


def devices_asked_for(body):
    """The part of a creation that says which devices a container gets."""
    host = body["HostConfig"]
    requests = [{"driver": r.get("Driver", ""), "count": r.get("Count", 0), "ids": r.get("DeviceIDs") or [],
                 "capabilities": r.get("Capabilities") or []} for r in host.get("DeviceRequests") or []]
    return {"requests": requests, "files": [d["PathOnHost"] for d in host.get("Devices") or []],
            "groups": host.get("GroupAdd") or [], "capabilities_added": host.get("CapAdd") or [],
            "security": host.get("SecurityOpt") or []}
