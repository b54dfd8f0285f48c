#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "dataset/run_journal.h"
#include "dataset/text_reader.h"
#include "jobs/record_window.h"

namespace muster {

/// The name of the entry of an identity that no run knows before a device is there.
inline constexpr const char* kEqualityClassEntry = "the equality class";

/// Texts as the value of an entry, so that no text reads as two, and none as no text: JSON, with
/// what is no UTF-8 replaced.
std::string text_value(const std::string& text);
std::string texts_value(const std::vector<std::string>& texts);

/// Names as one value, the same for no two lists: joined by ", ", as earlier versions wrote them,
/// and as JSON where that could be read as other names. So what they have begun is resumed.
std::string names_value(const std::vector<std::string>& names);

/// One name, or "none" where there is none; a name that reads so, or as JSON, is JSON.
std::string name_value(const std::optional<std::string>& name);

/// What of the inputs, and of how they are read, can change a byte of a run's output.
RunIdentity input_identity(const TextReaderOptions& input);

/// An identity without the entry of that name.
RunIdentity without_entry(RunIdentity identity, const std::string& name);

/// What of a record comes into a run's output, or decides what does.
struct RecordContent {
  std::uint64_t line = 0;
  std::string_view id;
  std::string_view text;
  std::string_view fields;       // kept ones, as JSON
  bool is_conversation = false;  // `text` is the JSON of its messages
};

/// That of a record as it was read, and as it waits to be written. Valid as long as it is.
RecordContent content_of(const TextRecord& record);
RecordContent content_of(const WindowRecord& record);

/// Adds a record to the hash over all records of a run.
void hash_record(Hash128& hash, const RecordContent& record);

}  // namespace muster
