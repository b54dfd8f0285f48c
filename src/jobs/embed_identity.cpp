// What a run was asked for, as pairs of a name and a value, and the hash over what it has read.

#include "jobs/embed_identity.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

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
  RunIdentity identity{{"the input", fmt::format("{}", fmt::join(input.inputs, ", "))},
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
  // Only where they are used, so that what was begun before they existed can be resumed.
  const auto add = [&](const char* name, std::string value) {
    identity.emplace(identity.begin() + 4, name, std::move(value));
  };
  if (writes_objects(options)) add("the form of a line of OUT", "an object");
  if (!input.keep.empty()) add("--keep", fmt::format("{}", fmt::join(input.keep, ", ")));
  return identity;
}

bool writes_objects(const EmbedOptions& options) {
  return options.out.extension() == ".jsonl" &&
         (options.input.id_field || !options.input.keep.empty());
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

void hash_record(Hash128& hash, const RecordContent& record) {
  fmt::memory_buffer numbers;  // on the stack: this is done for every record
  fmt::format_to(std::back_inserter(numbers), FMT_COMPILE("{}\n{}\n{}\n"), record.line,
                 record.id.size(), record.text.size());
  hash.update(std::string_view(numbers.data(), numbers.size()));
  hash.update(record.id);
  hash.update(record.text);
  if (record.fields.empty()) return;  // as it was before there were any
  hash.update(fmt::format("{}\n", record.fields.size()));
  hash.update(record.fields);
}

}  // namespace muster
