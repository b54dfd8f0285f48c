// Only muster's own form says of itself what it is. The forms of other programs are known by their
// shape, and in doubt a file is somebody's own: whoever means it removes it.

#include "cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::uint64_t kPlanSizeMost = 64 << 20;  // no plan of ours is so long
constexpr std::uint64_t kDevicesMost = 4096;       // as many as a recording may have
constexpr std::size_t kLayerDigitsMost = 4;        // no model has 10,000 layers

// One of another version is a plan, too.
bool is_own_plan(std::string_view text) {
  const auto plan = parse_plan_yaml("", text);
  return plan || plan.error().kind == ErrorKind::Unsupported;
}

bool is_place(const nlohmann::json& place) {
  if (place.is_number_unsigned()) return place.get<std::uint64_t>() < kDevicesMost;
  return place == "cpu" || place == "disk";
}

// Modules and where they go: numbers of devices, cpu or disk. A model may be cut between the
// outermost modules alone ("model", "lm_head"), so their names tell nothing.
bool is_device_map(std::string_view text) {
  const auto map = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return map.is_object() && !map.empty() && std::all_of(map.begin(), map.end(), is_place);
}

// Layers of each device; of one device alone it is a single number.
bool is_tensor_split(std::string_view text) {
  const auto counts = split(trim(text), ',');
  return std::all_of(counts.begin(), counts.end(), [](std::string_view count) {
    return !count.empty() && count.size() <= kLayerDigitsMost &&
           count.find_first_not_of("0123456789") == std::string_view::npos;
  });
}

bool is_vllm_flags(std::string_view text) {
  const auto line = trim(text);
  return line.find('\n') == std::string_view::npos &&
         (line.starts_with("VLLM_PP_LAYER_PARTITION=") ||
          line.starts_with("--tensor-parallel-size "));
}

bool is_of_form(std::string_view text, PlanFormat format) {
  switch (format) {
    case PlanFormat::Yaml:
      return is_own_plan(text);
    case PlanFormat::HfDeviceMap:
      return is_device_map(text);
    case PlanFormat::TensorSplit:
      return is_tensor_split(text);
    case PlanFormat::Vllm:
      return is_vllm_flags(text);
  }
  return false;
}

}  // namespace

Status check_plan_output(const std::filesystem::path& out, PlanFormat format,
                         std::string_view form) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(out, ignored)) return Done{};
  const auto text = read_file(out, kPlanSizeMost);
  if (!text && text.error().kind != ErrorKind::ResourceExhausted) return text.error();
  if (text && (text->empty() || is_of_form(*text, format))) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("-o {}: that is no plan in the form {}, and it would be overwritten: "
                           "remove it, or name another file",
                           out.string(), form)};
}

}  // namespace muster
