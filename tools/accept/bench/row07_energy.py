"""Energy by counters that are refreshed every 100 ms, and each way in which a counter can fail."""

from gpu_path.standin import run_tests
from programs import TESTS
from report import at_least, at_most

TITLE = "energy: 1,000 windows of a second on eight GPUs of four generations, every fault of a counter, phases and their total"
IS_TIMED = False

FOLDER = TESTS / "sanitized" / "bin"
WINDOWS, PERCENT = 1000, 0.5
REFRESH_JOULES = 62.74  # of the stand-in's H200: 0.1 s at its highest power
THOUSANDS = {"one GPU in bursts": "EnergyPhases.AThousandWindowsAreWithinHalfAPercent",
             "eight GPUs of four generations": "EnergyOfGenerations.AThousandWindowsOfEightGpusAreWithinHalfAPercent"}
# What each test shows, by the program that has it.
TESTS_OF = {
    "telemetry_test": {
        **{name: f"square waves, any phase, {what}" for what, name in THOUSANDS.items()},
        "EnergyPhases.ThePhasesOfARunAddUpToItsTotalWithinARefresh": "the phases of a run add up to its total within a refresh",
        "EnergyPhases.AMissingCounterIsIntegratedAndSaysSo": "a counter that is not there: integrated, and it says so",
        "EnergyPhases.ACounterThatMayNotBeReadIsIntegratedAndSaysSo": "a counter that is denied: integrated, and it says so",
        "EnergyPhases.AResetIsFlaggedAndHasNoTotal": "a reset in the window: flagged, no total",
        "EnergyWindow.ACounterThatGoesBackGivesNoTotal": "a counter that went back: flagged, no total",
        "EnergyWindow.AResetThatIsMadeUpForByTheEndIsSeen": "a reset that is made up for by the end: flagged",
        "EnergyWindow.WhatIsNotKnownIsNeverZero": "neither counter nor power: no number, and the reason",
        "EnergyWindow.ADeviceThatIsLostInTheWindowHasNoTotal": "a device that is lost: no number, and the reason",
        "EnergyWindow.AWindowWithinOneRefreshIsNoZeroEither": "a window within one refresh: no number, and the reason",
        "EnergyWindow.WhatLiesBetweenAFarEdgeAndTheWindowIsDoubtful": "edges that were found late: counted as error",
        "EnergyWindow.ThrottlingAndForeignProcessesAreFlagged": "throttling and foreign processes: flagged",
        "SamplingTest.EdgesAreFoundBesideADriverThatHangs": "a driver that hangs: its device says so, the others have their edges",
    },
    "hw_test": {
        "RaplCounter.CountsEveryTurnToTheStep": "RAPL: every turn of the counter, to its step",
        "RaplCounter.FindsTheStepOfEveryRange": "RAPL: the step of every range",
        "RaplEnergy.SaysWhatThePackageCouldNotTell": "RAPL that cannot be read: absent, with its errno",
        "NvmlSampler.AnEnergyCounterThatGoesAwayIsNoError": "a counter that goes away while it is watched: absent",
    },
    "sweep_test": {
        "PointRecord.CountsTheJoulesOfTheWindowOfTheRequests": "a point's joules are those of the window of its requests",
        "PointRecord.HasNoJoulesWhereThereIsNoCounter": "a point without a counter: null, and the reason",
        "PointRecord.HasNoJoulesWhereATrialWasNotWatched": "a point with a trial that nobody watched: null, and the reason",
        "PointRecord.SaysWhyEnergyWasIntegrated": "a point whose energy was integrated says why",
        "PointRecord.HasNoJoulesOfAPartOfItsDevices": "a point of which one device was not watched: null, and the reason",
    },
}


def skip_reason():
    absent = [program for program in TESTS_OF if not (FOLDER / program).exists()]
    return f"./test builds {', '.join(absent)}" if absent else None


def measure(report, arguments):
    results = {program: run_tests(report, program, names, folder=FOLDER) for program, names in TESTS_OF.items()}
    for what, name in THOUSANDS.items():
        test = results["telemetry_test"].get(name, {})
        report.add(at_least(f"windows of a second, {what}", int(test.get("windows", 0)), WINDOWS, 0))
        report.add(at_most(f"the worst of them against the integral of the power, {what}", float(test.get("worst_percent", "inf")),
                           PERCENT, 3, " %"))
    phases = results["telemetry_test"].get("EnergyPhases.ThePhasesOfARunAddUpToItsTotalWithinARefresh", {})
    report.add(at_most("the sum of a run's phases against its total, in 100 runs", float(phases.get("farthest_joules", "inf")),
                       REFRESH_JOULES, 2, " J"))
