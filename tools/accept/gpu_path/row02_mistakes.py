"""Mistakes of a program that uses a GPU, planted: the stand-in finds each, in every run."""

from gpu_path.standin import run_tests, skip_reason  # noqa: F401  a row is asked for it

TITLE = "Host access to device memory, a missing wait, a wrong stream: planted, and each found"
IS_TIMED = False

PLANTED = {
    "StandinTest.AForgottenCopyEndsTheProcess": "the host reads memory of a device",
    "StandinTest.AForgottenWaitEndsTheProcess": "the host reads what is still copied to it",
    "StandinTest.WritingWhatADeviceStillReadsEndsTheProcess": "the host writes what is still copied from it",
    "StandinTest.AWrongStreamIsNamedWithBothOperators": "a stream reads what another one writes",
    "StandinTest.MemoryThatWasNotWrittenIsNaN": "memory is read that nobody wrote",
    "StandinTest.AnOperatorWithoutAKernelIsRefusedByName": "an operator that would go to the host unseen",
    "StandinTest.TensorsOfHostAndDeviceDoNotMix": "an operator on tensors of host and device",
}


def measure(report, arguments):
    run_tests(report, "standin_torch_test", PLANTED)
