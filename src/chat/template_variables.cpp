// The names that a rendering sets itself are refused, not overruled: a request that names one of
// them means something that would not happen.

#include "chat/template_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "chat/budget.h"
#include "chat/filters.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 6> kSetByRendering{
    "messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"};

}  // namespace

Result<TemplateVariables> parse_template_variables(std::string_view json) {
  if (json.size() > kTemplateVariablesBytesMost) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("longer than {} bytes", kTemplateVariablesBytesMost)};
  }
  const auto value = MUSTER_TRY(ChatValue::parse(json));
  const auto* variables = value.as_map();
  if (variables == nullptr) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("expected an object, such as {{\"enable_thinking\": false}}, but got "
                             "a value of the kind {}",
                             kind_name(value))};
  }
  if (variables->size() > kTemplateVariablesMost) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("more than {} names", kTemplateVariablesMost)};
  }
  for (const auto& [name, unused] : *variables) {
    if (std::find(kSetByRendering.begin(), kSetByRendering.end(), name) == kSetByRendering.end()) {
      continue;
    }
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("'{}' cannot be given here: the rendering sets it", name)};
  }
  return *variables;
}

// Values of JSON can be written as JSON; nothing but a limit could be in the way.
std::string template_variables_json(const TemplateVariables& variables) {
  ChatBudget budget({.output_bytes_max = SIZE_MAX,
                     .steps_max = UINT64_MAX,
                     .bytes_max = UINT64_MAX,
                     .depth_max = SIZE_MAX});
  auto text = json_text(ChatValue(variables), {}, budget);
  return text ? *std::move(text) : std::string();
}

}  // namespace muster
