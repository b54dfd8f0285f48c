"""A model is fetched while the program is killed and its connections are cut, at random."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

from house.hub_server import COMMIT, Hub, hash_of
from programs import MODEL, MUSTER, PEER_PYTHON, embed, scratch
from report import holds, skipped

NOT_READ = {".gitattributes", "README.md", "data_config.json"}  # of the repository, by no program that embeds with it
TITLE = "muster pull through 20 random cuts; the cache is read by huggingface_hub and by muster embed"
IS_TIMED = False

NAME = "house/all-MiniLM-L6-v2"
ROUNDS = 10  # of one cut and one kill each
LIMIT_S = 120  # for one step; only ever waited for when something is wrong
READ_BACK = """import json, sys, pathlib, huggingface_hub
folder = huggingface_hub.snapshot_download(sys.argv[1], cache_dir=sys.argv[2], local_files_only=True)
files = [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()]
one = huggingface_hub.hf_hub_download(sys.argv[1], "config.json", cache_dir=sys.argv[2], local_files_only=True)
info = huggingface_hub.scan_cache_dir(sys.argv[2])
print(json.dumps({"folder": folder, "files": sorted(files), "config": one, "version": huggingface_hub.__version__,
                  "warnings": [str(w) for w in info.warnings], "repos": [r.repo_id for r in info.repos]}))"""


class Puller:
    """Runs of `muster pull` into one cache from one hub."""

    def __init__(self, hub, cache):
        self.hub, self.cache = hub, cache
        self.model = cache / ("models--" + NAME.replace("/", "--"))
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("HF_", "MUSTER_")) and not key.lower().endswith("_proxy")}
        self.environment |= {"HF_HUB_CACHE": str(cache), "HF_ENDPOINT": hub.endpoint, "HF_TOKEN": "hf_secret"}

    def start(self):
        return subprocess.Popen([str(MUSTER), "pull", NAME], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def end(self, process):
        out, err = process.communicate(timeout=LIMIT_S)
        return {"code": process.returncode, "out": out.strip(), "err": err.strip()}

    def killed_after(self, size):
        """Starts it and kills it once the hub has sent `size` bytes more; True if it was still running."""
        process, goal, end = self.start(), self.hub.cuts.sent + size, time.monotonic() + LIMIT_S
        while self.hub.cuts.sent < goal and process.poll() is None and time.monotonic() < end:
            self.hub.after_piece.wait(0.01)
            self.hub.after_piece.clear()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)
        return process.returncode == -signal.SIGKILL

    def faults(self):
        """What must not be, whenever the program ended: a named blob with other bytes, a reference to half a model."""
        blobs = [path for path in (self.model / "blobs").glob("*") if path.suffix != ".incomplete"]
        found = [f"blob {path.name}" for path in blobs if hash_of(path) != path.name]
        found += [f"link {path.name}" for path in (self.model / "snapshots").rglob("*") if path.is_symlink() and not path.exists()]
        if (self.model / "refs" / "main").exists() and self.growing():
            found.append("refs/main before the last file")
        return found

    def growing_size(self):
        """How much of the weights is there."""
        return max((path.stat().st_size for path in (self.model / "blobs").glob("*.incomplete")), default=0)

    def growing(self):
        return [path.name for path in (self.model / "blobs").glob("*.incomplete")]


def read_back(report, puller, wanted):
    if not PEER_PYTHON.exists():
        report.add(skipped("huggingface_hub finds it", ".deps/peers is not there"))
        return
    done = subprocess.run([str(PEER_PYTHON), "-c", READ_BACK, NAME, str(puller.cache)], capture_output=True, text=True,
                          timeout=LIMIT_S, env=puller.environment | {"HF_HUB_OFFLINE": "1"})
    found = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()[-400:]}
    report.raw["huggingface_hub"] = found
    is_right = (found.get("files") == wanted and found.get("folder", "").endswith(COMMIT) and
                not found.get("warnings") and found.get("repos") == [NAME])
    report.add(holds(f"huggingface_hub {found.get('version', '')} finds it (local_files_only, scan_cache_dir)", is_right,
                     found.get("error") or f"{len(found['files'])} files, {len(found['warnings'])} warnings"))


def embeds_alike(report, puller):
    texts = scratch("pull.txt")
    texts.write_text("where did we leave the keys?\nthe house is by the sea\n")
    vectors = {}
    os.environ["HF_HUB_CACHE"] = str(puller.cache)
    try:
        for name, model in (("folder", MODEL), ("pulled", NAME)):
            out = scratch(f"pull-{name}.npy")
            embed(texts, out, "--devices", "1xcpu", model=model, timeout_s=LIMIT_S)
            vectors[name] = out.read_bytes()
    finally:
        del os.environ["HF_HUB_CACHE"]
    report.add(holds("muster embed NAME has the vectors of the folder", vectors["folder"] == vectors["pulled"],
                     f"{len(vectors['pulled'])} bytes, {'the same' if vectors['folder'] == vectors['pulled'] else 'others'}"))


def measure(report, arguments):
    print(f"  note  seed {arguments.seed}")
    chance, cache = random.Random(arguments.seed), scratch("pull-cache")
    shutil.rmtree(cache, ignore_errors=True)
    hub = Hub(MODEL, NAME)
    try:
        puller = Puller(hub, cache)
        size = sum(map(len, hub.files.values()))
        # Each run is cut off once, goes on by itself, and is killed; a third of the model is left for the end.
        faults, kills, resumed, most = [], 0, [], size // (3 * ROUNDS)
        for _ in range(ROUNDS):
            left, before = puller.growing_size(), len(hub.cuts.requests)
            hub.cuts.cut_at = hub.cuts.sent + chance.randrange(most)
            kills += puller.killed_after(most + chance.randrange(most))
            faults += puller.faults()
            if left:
                resumed.append((left, hub.first_store_range(before)))
        hub.cuts.cut_at = None
        first, second = puller.start(), puller.start()  # and two at once for the rest
        ends = [puller.end(first), puller.end(second)]
        sent = hub.cuts.sent
        hub.cuts.requests, seen = [], hub.cuts.requests
        again = puller.end(puller.start())
        report.raw.update(kills=kills, cuts=hub.cuts.cut_count, faults=faults, ends=ends, again=again, bytes_sent=sent,
                          bytes=size, ranges=[entry[:2] for entry in seen if entry[1]], growing=puller.growing(), resumed=resumed)
        snapshot = puller.model / "snapshots" / COMMIT
        wanted = sorted(hub.files.keys() - NOT_READ)
        found = sorted(str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if path.is_file())
        report.add(holds("times that it was killed or cut off", kills + hub.cuts.cut_count >= 2 * ROUNDS,
                         f"{kills} kills, {hub.cuts.cut_count} cuts", f">= {2 * ROUNDS}"))
        report.add(holds("a wrong file or a name for half a model, looked for after each", not faults, f"{len(faults)}: {faults[:2]}", "none"))
        report.add(holds("two at once end well and print the snapshot", all(e["code"] == 0 and e["out"] == str(snapshot) for e in ends),
                         str([e["code"] for e in ends] + [e["err"][-200:] for e in ends if e["code"]])))
        report.add(holds("every file is the hub's", found == wanted and not puller.growing() and
                         all((snapshot / name).read_bytes() == hub.files[name] for name in wanted), f"{len(wanted)} files"))
        report.add(holds("each run goes on where the one before was killed", resumed and all(a == b for a, b in resumed),
                         f"{sum(a == b for a, b in resumed)} of {len(resumed)}"))
        report.add(holds("a run more asks once and says so", again["code"] == 0 and "already here" in again["err"] and
                         len(hub.cuts.requests) == 1, f"{len(hub.cuts.requests)} requests; {again['err']}"))
        report.add(holds("the token is kept from the second host", all(not token for path, _, token in seen if path.startswith("/store/"))
                         and any(token == "Bearer hf_secret" for _, _, token in seen), "yes"))
        read_back(report, puller, wanted)
        embeds_alike(report, puller)
    finally:
        hub.close()
        shutil.rmtree(cache, ignore_errors=True)
