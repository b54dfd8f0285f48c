"""What one NVML call or field costs here: nvml_fields.py prints microseconds for each, by nvidia-ml-py."""

import json
import statistics
import time

import pynvml

TIMES = 15


def cost(call):
    times = []
    answer = None
    for _ in range(TIMES):
        begin = time.perf_counter()
        try:
            answer = call()
        except pynvml.NVMLError as error:
            answer = str(error)
        times.append((time.perf_counter() - begin) * 1e6)
        time.sleep(0.02)
    return {"median_us": round(statistics.median(times), 1), "answer": str(answer)[:60]}


def main():
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    fields = (186, 185, 83, 82, 74, 76, 269, 270, 271, 230, 138, 139, 197, 198, 190, 94, 142)
    result = {}
    for field in fields:
        result[f"field {field}"] = cost(lambda: [(v.nvmlReturn, v.value.ullVal) for v in pynvml.nvmlDeviceGetFieldValues(gpu, [field])])
    result["fields 186 185 83"] = cost(lambda: len(pynvml.nvmlDeviceGetFieldValues(gpu, [186, 185, 83])))
    for name in ("PowerUsage", "TotalEnergyConsumption", "UtilizationRates", "MemoryInfo", "EnforcedPowerLimit"):
        result[name] = cost(lambda: getattr(pynvml, "nvmlDeviceGet" + name)(gpu))
    result["Samples of power"] = cost(lambda: len(pynvml.nvmlDeviceGetSamples(gpu, pynvml.NVML_TOTAL_POWER_SAMPLES, 0)[1]))
    result["Samples of utilisation"] = cost(lambda: len(pynvml.nvmlDeviceGetSamples(gpu, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)[1]))
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
