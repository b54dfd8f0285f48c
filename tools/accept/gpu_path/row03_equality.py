"""The code for GPUs on the stand-in: a text has the same bits whatever stands beside it."""

from gpu_path.standin import run_tests, skip_reason  # noqa: F401  a row is asked for it

TITLE = "Order, batch, lane and company do not show in the bits: fp32, bf16, fp16, every family"
IS_TIMED = False

TESTS = {
    "GpuTest.ATextHasTheSameBitsInEveryOrderBatchLaneAndCompany": "orders, batches, lanes and company, in three precisions",
    "GpuTest.TwoLanesAtOnceGiveTheBitsOfOne": "two lanes at once",
}


def measure(report, arguments):
    run_tests(report, "engine_test", TESTS, {"GPU_TEST_DEVICE": "standin"})
