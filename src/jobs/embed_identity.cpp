#include "jobs/embed_identity.h"

#include <fmt/format.h>

#include <string>

namespace muster {
namespace {

constexpr const char* kPrecision = "the precision";
constexpr const char* kEqualityClass = "the equality class";

}  // namespace

RunIdentity embed_identity(const EmbedOptions& options, const EmbedModel& model) {
  const auto& input = options.input;
  const auto format_name = [&]() -> std::string {
    if (!input.format) return "by name";
    return std::to_string(static_cast<int>(*input.format));
  };
  return {{"the input", fmt::format("{}", fmt::join(input.inputs, ", "))},
          {"--format", format_name()},
          {"--field", input.field},
          {"--id-field", input.id_field.value_or("none")},
          {"--max-length", std::to_string(model.length_max)},
          {"--pooling", model.pooling},
          {"--normalize", model.normalize ? "on" : "off"},
          {"--prompt-name", model.prompt_name.empty() ? "none" : model.prompt_name},
          {"--skip-bad", options.skip_bad ? "on" : "off"},
          {"the model", model.hash},
          {kPrecision, std::string(precision_name(model.precision))},
          {kEqualityClass, model.equality_class}};
}

RunIdentity identity_as_asked(const EmbedOptions& options, const RunIdentity& identity) {
  RunIdentity asked;
  for (const auto& entry : identity) {
    if (entry.first == kEqualityClass) continue;
    if (entry.first == kPrecision && !options.precision) continue;
    asked.push_back(entry);
  }
  return asked;
}

void hash_record(Hash128& hash, std::uint64_t line, std::string_view id, std::string_view text) {
  hash.update(fmt::format("{}\n{}\n{}\n", line, id.size(), text.size()));
  hash.update(id);
  hash.update(text);
}

}  // namespace muster
