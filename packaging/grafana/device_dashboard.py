"""The dashboard of devices: the metrics in docs/metrics.md, which `muster monitor --listen` and `muster serve` have.

What is wrong comes first; the other rows follow the way of the work. Series of boards have mig="": those of MIG slices would
be counted twice in a sum.
"""

from panels import GREEN, HOST, ORANGE, RED, annotation, dashboard_of, label_variable, panel, text_variable

GPU = HOST + ',gpu=~"$gpu"'
BOARD = GPU + ',mig=""'
ONE = "{{instance}} gpu {{gpu}}"
HEALTH = {"0": ("well", GREEN), "1": ("warning", ORANGE), "2": ("unfit", RED)}
ACTIONS = {"0": ("none", GREEN), "1": ("reset", RED), "2": ("reboot", RED), "3": ("drain peer-to-peer", ORANGE),
           "4": ("drain and reset", RED)}


def wrong():
    return [
        panel("Available GPUs", "stat", [(f"sum(muster_gpu_up{{{GPU}}})", "up"),
                                         (f"sum(muster_gpu_expected{{{HOST}}})", "expected")], width=5, height=4),
        panel("Worst health", "stat", [(f"max(muster_gpu_health_state{{{GPU}}})", "")], width=4, height=4, names=HEALTH,
              help="The worst verdict of all watches; `muster doctor` says it in sentences."),
        panel("XIDs in the last hour", "stat", [(f"sum(increase(muster_gpu_xid_errors_total{{{GPU}}}[1h]))", "")], width=4,
              height=4, steps=[(None, GREEN), (1, ORANGE)]),
        panel("Age of the data", "stat",
              [(f"max(time() - muster_gpu_collector_last_success_timestamp_seconds{{{GPU}}})", "")], "s", 4, 4,
              steps=[(None, GREEN), (10, ORANGE), (30, RED)], help="Of the GPU that was silent longest."),
        panel("GPUs with processes (active workers)", "stat", [(f"sum(muster_gpu_processes{{{BOARD}}} > bool 0)", "")], width=4,
              height=4),
        panel("Processes", "stat", [(f"sum(muster_gpu_processes{{{BOARD}}})", "")], width=3, height=4),
        panel("Alerts that fire", "table", [(f'ALERTS{{alertstate="firing",{HOST}}}', "")], width=12, hidden=("alertstate", "Value")),
        panel("What the driver asks for", "table", [(f"muster_gpu_recovery_action{{{GPU}}}", "")], width=12, names=ACTIONS),
        panel("Health by watch", "state-timeline", [(f"max by (instance, gpu, watch) (muster_gpu_health_state{{{GPU}}})",
                                                     ONE + " {{watch}}")], width=24, names=HEALTH),
    ]


def use():
    active = f"muster_gpu_sm_active_ratio{{{BOARD}}} or muster_gpu_utilization_ratio{{{BOARD}}}"
    return [
        panel("Average GPU utilization", "stat", [(f"avg(muster_gpu_utilization_ratio{{{BOARD}}})", "")], "percentunit", 4),
        panel("GPU utilization", "timeseries", [(f"muster_gpu_utilization_ratio{{{BOARD}}}", ONE)], "percentunit", 10, share=True,
              help="A kernel was running; says nothing about how much of the GPU it used."),
        panel("Tensor cores", "timeseries", [(f'muster_gpu_tensor_active_ratio{{{BOARD},pipe="any"}}', ONE)], "percentunit", 10,
              share=True),
        panel("All GPUs by activity", "heatmap", [(active, ONE)], "percentunit",
              help="How many GPUs are how busy: multiprocessors with work where the driver tells, else a kernel running."),
        panel("Busy, and with what", "timeseries", [(f"avg(muster_gpu_utilization_ratio{{{BOARD}}})", "a kernel runs"),
                                                    (f"avg(muster_gpu_sm_active_ratio{{{BOARD}}})", "multiprocessors active"),
                                                    (f"avg(muster_gpu_sm_occupancy_ratio{{{BOARD}}})", "warps resident"),
                                                    (f'avg(muster_gpu_tensor_active_ratio{{{BOARD},pipe="any"}})', "tensor cores")],
              "percentunit", share=True, help="The wider the gap below the first line, the less of the GPU is used."),
        panel("Memory bandwidth in use", "timeseries", [(f"muster_gpu_dram_active_ratio{{{BOARD}}}", ONE)], "percentunit", share=True),
        panel("Spread within a machine", "timeseries", [(f"max by (instance) ({active}) - min by (instance) ({active})",
                                                         "{{instance}}")], "percentunit", share=True,
              help="0: all GPUs of the machine are equally busy."),
        panel("Tensor cores by kind", "timeseries", [(f"avg by (pipe) (muster_gpu_tensor_active_ratio{{{BOARD}}})", "{{pipe}}")],
              "percentunit", share=True),
        panel("Other pipes", "timeseries", [(f"avg by (pipe) (muster_gpu_pipe_active_ratio{{{BOARD}}})", "{{pipe}}")],
              "percentunit", share=True),
    ]


def memory():
    used = f'muster_gpu_memory_bytes{{{BOARD},state="used"}}'
    size = f"muster_gpu_memory_size_bytes{{{BOARD}}}"
    return [
        panel("GPU memory distribution", "timeseries", [(f"sum by (state) (muster_gpu_memory_bytes{{{BOARD}}})", "{{state}}")],
              "bytes", stack=True),
        panel("Memory usage", "timeseries", [(used, ONE)], "bytes"),
        panel("Share of memory in use", "timeseries", [(f"{used} / ignoring (state) {size}", ONE)], "percentunit", share=True,
              steps=[(None, GREEN), (0.9, ORANGE)]),
        panel("Share in an hour, at this slope", "timeseries",
              [(f"predict_linear({used}[30m], 3600) / ignoring (state) {size}", ONE)], "percentunit",
              steps=[(None, GREEN), (1, RED)]),
        panel("MIG slices: memory in use", "timeseries",
              [(f'muster_gpu_memory_bytes{{{GPU},mig!="",state="used"}}', ONE + " slice {{mig}}")], "bytes"),
        panel("Memory of the machine", "timeseries", [(f"muster_host_memory_bytes{{{HOST}}}", "{{instance}} {{state}}")], "bytes"),
    ]


def power():
    instant = f'muster_gpu_power_watts{{{GPU},window="instant",scope="gpu"}}'
    energy = f"muster_gpu_energy_joules_total{{{GPU}}}"
    active = f"(muster_gpu_sm_active_ratio{{{BOARD}}} or muster_gpu_utilization_ratio{{{BOARD}}})"
    return [
        panel("Power, all GPUs", "stat", [(f"sum({instant})", "")], "watt", 4, 4),
        panel("Energy in this range", "stat", [(f"sum(increase({energy}[$__range])) / 3.6e6", "")], "kwatth", 4, 4),
        panel("CO2e in this range", "stat", [(f"sum(increase({energy}[$__range])) / 3.6e6 * $intensity * $pue", "")], "massg", 4, 4,
              help="At $intensity g/kWh and a PUE of $pue, both set above; of the GPUs alone."),
        panel("Energy of idle GPUs, last hour", "stat",
              [(f"sum(increase({energy}[1h]) * on (instance, job, gpu, uuid) (max_over_time({active}[1h:1m]) < bool 0.01))", "")],
              "joule", 4, 4, help="GPUs that were below 1 % for the whole hour."),
        panel("Share of the power limit, highest", "stat",
              [(f"max({instant} / ignoring (window, scope, kind) muster_gpu_power_limit_watts{{{GPU},kind=\"enforced\"}})", "")],
              "percentunit", 8, 4),
        panel("Power", "timeseries", [(instant, ONE)], "watt"),
        panel("Power by the energy counter", "timeseries", [(f"rate({energy}[$__rate_interval])", ONE)], "watt",
              help="The mean between scrapes: what the sensor cannot miss."),
        panel("Share of the power limit", "timeseries",
              [(f"{instant} / ignoring (window, scope, kind) muster_gpu_power_limit_watts{{{GPU},kind=\"enforced\"}}", ONE)],
              "percentunit", share=True),
    ]


def heat():
    return [
        panel("Temperature", "timeseries", [(f"muster_gpu_temperature_celsius{{{GPU}}}", ONE + " {{sensor}}")], "celsius"),
        panel("Degrees to the limit", "timeseries", [(f"muster_gpu_temperature_headroom_celsius{{{GPU}}}", ONE)], "celsius",
              steps=[(None, RED), (5, ORANGE), (10, GREEN)]),
        panel("Held back, by reason", "timeseries",
              [(f"sum by (reason) (rate(muster_gpu_clock_event_seconds_total{{{GPU}}}[$__rate_interval]))", "{{reason}}")],
              "short", stack=True, help="How many GPUs' worth of time each reason held the clock down."),
        panel("Held back now", "state-timeline",
              [(f'max by (instance, gpu) (muster_gpu_clock_event_active{{{GPU},reason=~"hw_.*|sw_thermal"}})', ONE)], width=8,
              names={"0": ("no", GREEN), "1": ("slowed down", RED)}),
        panel("Clock of the multiprocessors", "timeseries", [(f'muster_gpu_clock_hertz{{{GPU},domain="sm"}}', ONE)], "hertz"),
        panel("Share of the highest clock", "timeseries",
              [(f'muster_gpu_clock_hertz{{{GPU},domain="sm"}} / muster_gpu_clock_max_hertz{{{GPU},domain="sm"}}', ONE)],
              "percentunit", share=True),
    ]


def links():
    return [
        panel("NVLink bandwidth", "timeseries", [(f"rate(muster_gpu_nvlink_bytes_total{{{GPU}}}[$__rate_interval])",
                                                  ONE + " {{direction}}")], "Bps"),
        panel("PCIe bandwidth", "timeseries", [(f"rate(muster_gpu_pcie_bytes_total{{{GPU}}}[$__rate_interval])",
                                                ONE + " {{direction}}")], "Bps"),
        panel("NVLinks that are up", "timeseries", [(f"muster_gpu_nvlink_links_active{{{GPU}}}", ONE)]),
        panel("NVLink errors in ten minutes", "timeseries",
              [(f"sum by (instance, gpu, kind) (increase(muster_gpu_nvlink_errors_total{{{GPU}}}[10m]))", ONE + " {{kind}}")]),
        panel("PCIe replays in ten minutes", "timeseries", [(f"increase(muster_gpu_pcie_replays_total{{{GPU}}}[10m])", ONE)]),
        panel("PCIe link", "table", [(f"muster_gpu_pcie_link_generation{{{GPU}}}", ""), (f"muster_gpu_pcie_link_lanes{{{GPU}}}", "")]),
    ]


def errors():
    return [
        panel("XID errors", "timeseries", [(f"sum by (instance, gpu, xid) (increase(muster_gpu_xid_errors_total{{{GPU}}}[10m]))",
                                            ONE + " XID {{xid}}")], width=12, help="Within ten minutes."),
        panel("XIDs, seconds ago", "table", [(f"time() - muster_gpu_xid_last_timestamp_seconds{{{GPU}}}", "")], "s", 12),
        panel("Memory errors", "timeseries", [(f"sum by (instance, gpu, severity) (muster_gpu_ecc_errors_total{{{GPU},scope=\"volatile\"}})",
                                               ONE + " {{severity}}")], help="Since the driver was loaded."),
        panel("Replaced memory rows", "timeseries", [(f"muster_gpu_remapped_rows{{{GPU}}}", ONE + " {{cause}}")]),
        panel("Rows that wait or failed", "timeseries", [(f"muster_gpu_remap_pending{{{GPU}}}", ONE + " wait for a reset"),
                                                         (f"muster_gpu_remap_failed{{{GPU}}}", ONE + " failed")]),
    ]


def processes():
    return [
        panel("Process count", "timeseries", [(f"muster_gpu_processes{{{BOARD}}}", ONE)], width=12),
        panel("Memory of processes", "table", [(f"muster_gpu_process_memory_bytes{{{GPU}}}", "")], "bytes", 12, hidden=("uuid",)),
        panel("GPUs", "table", [(f"muster_gpu_info{{{GPU}}}", "")], width=24, hidden=("Value",)),
        panel("CPU utilization", "timeseries", [(f"muster_cpu_utilization_ratio{{{HOST}}}", "{{instance}} {{device}}")],
              "percentunit", 12, share=True),
        panel("CPU frequency", "timeseries", [(f"muster_cpu_frequency_hertz{{{HOST}}}", "{{instance}} {{device}}")], "hertz", 12),
    ]


def collector():
    buckets = f"muster_gpu_collector_tick_seconds_bucket{{{HOST}}}"
    return [
        panel("Duration of a visit, 99th percentile", "timeseries",
              [(f"histogram_quantile(0.99, sum by (instance, tier, le) (rate({buckets}[5m])))", "{{instance}} {{tier}}")], "s"),
        panel("Driver calls a second", "timeseries",
              [(f"sum by (instance) (rate(muster_gpu_collector_calls_total{{{HOST}}}[$__rate_interval]))", "{{instance}}")]),
        panel("Time inside the driver, by call", "timeseries",
              [(f"topk(8, rate(muster_gpu_collector_call_seconds_total{{{HOST}}}[$__rate_interval]))", "{{instance}} {{call}}")],
              "percentunit"),
        panel("Visits missed", "timeseries",
              [(f"sum by (instance, tier) (increase(muster_gpu_collector_missed_ticks_total{{{HOST}}}[10m]))", "{{instance}} {{tier}}")]),
        panel("CPU of the sampler", "timeseries",
              [(f"rate(muster_gpu_collector_cpu_seconds_total{{{HOST}}}[$__rate_interval])", "{{instance}}")], "percentunit"),
        panel("Memory of the sampler", "timeseries", [(f"muster_gpu_collector_resident_bytes{{{HOST}}}", "{{instance}}")], "bytes"),
        panel("Restarts of the sampler", "timeseries", [(f"muster_gpu_collector_restarts_total{{{HOST}}}", "{{instance}}")]),
        panel("Version", "table", [(f"muster_build_info{{{HOST}}}", "")], hidden=("Value",)),
        panel("Machines", "table", [(f"muster_machine_info{{{HOST}}}", "")], hidden=("Value",)),
    ]


ROWS = [("What is wrong", wrong), ("Use", use), ("Memory", memory), ("Power and energy", power), ("Heat and clocks", heat),
        ("Links", links), ("Errors", errors), ("Processes and machines", processes), ("What watching costs", collector)]


def dashboard():
    return dashboard_of(
        "muster-devices", "muster: devices", ["muster", "gpu"], ROWS,
        annotations=[
            annotation("XIDs", f"muster_gpu_xid_last_timestamp_seconds{{{GPU}}} * 1000", "red", useValueForTime=True, step="60s",
                       titleFormat="XID {{xid}}", textFormat=ONE),
            annotation("Alerts", f'ALERTS{{alertstate="firing",{HOST}}}', "orange", titleFormat="{{alertname}}",
                       textFormat="{{instance}} {{gpu}}")],
        variables=[
            label_variable("instance", "Machine", "label_values(muster_build_info, instance)"),
            label_variable("gpu", "GPU", 'label_values(muster_gpu_info{instance=~"$instance"}, gpu)'),
            # No place's figure is a fair guess for another's: 0 until someone states theirs.
            text_variable("intensity", "gCO2e per kWh", "0"),
            text_variable("pue", "PUE", "1")])
