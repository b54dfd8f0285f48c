// The report for programs has every figure, with null for what is not known.

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_values.h"
#include "cli/embed_report.h"

namespace muster {
namespace {

// What the worker counted; null where nothing is counted (a GPU's memory).
nlohmann::ordered_json memory_json(const DeviceProgress& device) {
  if (device.weights_bytes == 0) return nullptr;
  return {{"weights_bytes", device.weights_bytes},
          {"load_peak_bytes", device.load_peak_bytes},
          {"activation_peak_bytes", device.activation_peak_bytes}};
}

}  // namespace

std::string report_json(const EmbedReport& report) {
  using Json = nlohmann::ordered_json;
  const auto& progress = report.progress;
  Json devices = Json::array();
  for (const auto& device : progress.devices) {
    devices.push_back({{"name", device.name},
                       {"text_count", device.text_count},
                       {"token_count", device.token_count},
                       {"busy_seconds", or_null(device.busy_seconds)},
                       {"ready_seconds", device.ready_seconds},
                       {"restart_count", device.restart_count},
                       {"memory", memory_json(device)},
                       {"state", device.state},
                       {"reason", device.reason}});
  }
  const auto& time = report.time;
  Json json{{"out", report.out.string()},
            {"index", report.index.string()},
            {"was_complete", report.was_complete},
            {"dim", report.dim},
            {"text_count", progress.text_count},
            {"token_count", progress.token_count},
            {"resumed_count", progress.resumed_count},
            {"bad_count", progress.bad_count},
            {"blank_count", progress.blank_count},
            {"truncated_count", progress.truncated_count},
            {"duplicate_id_count", progress.duplicate_id_count},
            {"first_duplicate_id", nullptr},
            {"are_all_ids_compared", report.are_all_ids_compared},
            {"read_count", progress.read_count},
            {"input_read_bytes", progress.input_size_read},
            {"input_consumed_bytes", progress.input_size_consumed},
            {"input_total_bytes", nullptr},
            {"precision", precision_name(report.precision)},
            {"precision_reason", report.precision_reason},
            {"equality_class", report.equality_class},
            {"total_seconds", report.total_seconds},
            {"first_vector_seconds", report.first_result_seconds},
            {"elapsed_seconds", progress.elapsed_seconds},
            {"parent_cpu_seconds", report.parent_cpu_seconds},
            {"loop_cpu_seconds", report.loop_cpu_seconds},
            {"worker_cpu_seconds", or_null(report.worker_cpu_seconds)},
            {"time",
             {{"measure_seconds", time.measure},
              {"start_seconds", time.start},
              {"read_seconds", time.read},
              {"tokenize_seconds", time.tokenize},
              {"wait_seconds", time.wait},
              {"wait_for_writer_seconds", time.wait_for_writer},
              {"write_seconds", time.write},
              {"other_seconds", time.other}}},
            {"devices", std::move(devices)}};
  if (!report.first_duplicate.empty()) json["first_duplicate_id"] = report.first_duplicate;
  if (progress.input_size_total) json["input_total_bytes"] = *progress.input_size_total;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
