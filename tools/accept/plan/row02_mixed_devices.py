"""How often a device map offloads although the model fits the GPUs."""

import json
import subprocess

from programs import BUILD
from report import Check, MISS, PASS, at_least, holds

TITLE = "Mixed devices: six decoders on 2 to 8 GPUs of 1 to 3 sizes, where all fits without offloading"
IS_TIMED = False

INSTANCES = 20_000  # the share's standard error is then below 0.2 %
INSTANCES_VARIED = 2_500
INSTANCES_MIN = 2400
ACCELERATE_PERCENT = 6.4  # its `auto`, within
ACCELERATE_WITHIN = 1.0

# What the share depends on: each is the study with one choice changed.
VARIATIONS = {
    "nothing kept free on a GPU": ("--margin-gib", "0"),
    "2 GiB kept free": ("--margin-gib", "2"),
    "GPUs of 8, 12, 16, 24, 32, 40, 48 and 80 GiB": ("--sizes", "8,12,16,24,32,40,48,80"),
    "GPUs with 1 to 2 times the model": ("--range", "1,2"),
}


def study(seed, count, *options):
    done = subprocess.run([BUILD / "bin" / "mixed_devices", "--seed", str(seed), "--count", str(count), *options],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def share(result, strategy):
    return 100.0 * result["accelerate"][strategy] / result["instances"]


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "mixed_devices"], check=True, stdout=subprocess.DEVNULL)
    result = study(arguments.seed, INSTANCES)
    report.raw.update(seed=arguments.seed, study=result)
    report.add(at_least("machines and models that fit without offloading", result["instances"], INSTANCES_MIN, digits=0))
    measured = share(result, "auto")
    is_near = abs(measured - ACCELERATE_PERCENT) <= ACCELERATE_WITHIN
    report.add(Check("accelerate's auto offloads", f"{ACCELERATE_PERCENT} +- {ACCELERATE_WITHIN} %", f"{measured:.2f} %",
                     PASS if is_near else MISS))
    for strategy in ("balanced_low_0", "sequential"):
        print(f"  note  accelerate's {strategy} offloads: {share(result, strategy):.2f} %")
    ours = result["muster"]
    report.add(holds("muster's auto offloads: module trees", ours["modules"] == 0, str(ours["modules"]), "0"))
    report.add(holds("muster's chain finds no placement: order given, order free",
                     ours["chain_in_order"] + ours["chain_any_order"] == 0,
                     f"{ours['chain_in_order']}, {ours['chain_any_order']}", "0, 0"))
    plan = result["plan"]
    report.add(holds("muster's whole plans (1,024 tokens, cache, activations and context counted) that offload",
                     plan["offloaded"] == 0 and plan["instances"] >= INSTANCES_MIN,
                     f"{plan['offloaded']} of {plan['instances']:,} that fit", "0"))
    report.raw["variations"] = {}
    for what, options in VARIATIONS.items():
        varied = study(arguments.seed, INSTANCES_VARIED, *options)
        report.raw["variations"][what] = varied
        print(f"  note  with {what}: accelerate's auto offloads {share(varied, 'auto'):.2f} %, "
              f"muster's {varied['muster']['modules']}")
        report.add(holds(f"muster's auto offloads, with {what}", sum(varied["muster"].values()) == 0,
                         str(sum(varied["muster"].values())), "0"))
