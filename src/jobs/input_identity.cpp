// What of the inputs a run must find again to go on: how they are read, and a hash over what was
// read.

#include "jobs/input_identity.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

constexpr std::string_view kBetween = ", ";  // two names
constexpr const char* kNone = "none";

std::string as_json(const nlohmann::json& texts) {
  return texts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string text_value(const std::string& text) { return as_json(text); }
std::string texts_value(const std::vector<std::string>& texts) { return as_json(texts); }

// What is joined begins with no bracket and can be taken apart again; what is not begins with one.
std::string names_value(const std::vector<std::string>& names) {
  const bool can_be_joined = !names.empty() && !names.front().starts_with('[') &&
                             std::none_of(names.begin(), names.end(), [](const std::string& name) {
                               return name.find(kBetween) != std::string::npos;
                             });
  return can_be_joined ? fmt::format("{}", fmt::join(names, kBetween)) : texts_value(names);
}

std::string name_value(const std::optional<std::string>& name) {
  if (!name) return kNone;
  return *name == kNone || name->starts_with('"') ? text_value(*name) : *name;
}

RunIdentity input_identity(const TextReaderOptions& input) {
  const auto format =
      input.format ? std::to_string(static_cast<int>(*input.format)) : std::string("by name");
  return {{"the input", names_value(input.inputs)},
          {"--format", format},
          {"--field", input.field},
          {"--id-field", name_value(input.id_field)}};
}

RunIdentity without_entry(RunIdentity identity, const std::string& name) {
  std::erase_if(identity, [&](const auto& entry) { return entry.first == name; });
  return identity;
}

RecordContent content_of(const TextRecord& record) {
  return {.line = record.line,
          .id = record.id,
          .text = record.text,
          .fields = record.fields,
          .is_conversation = record.is_conversation};
}

RecordContent content_of(const WindowRecord& record) {
  const auto& entry = record.entry;
  return {.line = entry.line,
          .id = entry.id,
          .text = entry.text,
          .fields = entry.fields,
          .is_conversation = record.is_conversation};
}

void hash_record(Hash128& hash, const RecordContent& record) {
  fmt::memory_buffer numbers;  // on the stack: this is done for every record
  fmt::format_to(std::back_inserter(numbers), FMT_COMPILE("{}\n{}\n{}\n"), record.line,
                 record.id.size(), record.text.size());
  hash.update(std::string_view(numbers.data(), numbers.size()));
  hash.update(record.id);
  hash.update(record.text);
  // As it was before there were any of these.
  if (record.is_conversation) hash.update(std::string_view("messages\n"));
  if (record.fields.empty()) return;
  hash.update(fmt::format("{}\n", record.fields.size()));
  hash.update(record.fields);
}

}  // namespace muster
