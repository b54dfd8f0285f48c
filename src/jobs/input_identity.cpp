// What of the inputs a run must find again to go on: how they are read, and a hash over what was
// read.

#include "jobs/input_identity.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>

namespace muster {

RunIdentity input_identity(const TextReaderOptions& input) {
  const auto format =
      input.format ? std::to_string(static_cast<int>(*input.format)) : std::string("by name");
  return {{"the input", fmt::format("{}", fmt::join(input.inputs, ", "))},
          {"--format", format},
          {"--field", input.field},
          {"--id-field", input.id_field.value_or("none")}};
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
