#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "dataset/memory_source.h"
#include "dataset/record_stream.h"

namespace muster {

/// Reads all of `bytes` in reads of `read_size` and checks what is promised of every record.
/// `make_stream` gives a RecordStream for a source.
template <typename MakeStream>
std::vector<std::string> fuzz_records(std::string_view bytes, std::size_t read_size,
                                      MakeStream make_stream) {
  const auto stream = make_stream(std::make_unique<MemorySource>(std::string(bytes), read_size));
  std::vector<std::string> all;
  TextRecord record;
  std::uint64_t line_before = 0;
  for (;;) {
    const auto more = stream->next(record);
    if (!more) {
      all.push_back(more.error().message);
      return all;
    }
    if (!*more) return all;
    MUSTER_CHECK(record.line > line_before);
    line_before = record.line;
    MUSTER_CHECK(!invalid_utf8_at(record.text) && !invalid_utf8_at(record.id));
    MUSTER_CHECK(!record.fault ||
                 (record.text.empty() && record.id.empty() && record.fields.empty()));
    MUSTER_CHECK(!invalid_utf8_at(record.fields));
    MUSTER_CHECK(record.fields.empty() || nlohmann::json::parse(record.fields).is_object());
    all.push_back(record.fault ? record.fault->message
                               : record.id + "=" + record.text + record.fields);
    all.back() += "@" + std::to_string(record.line);
  }
}

/// Where a read ends must not matter: bytes come one, three, and all at a time.
template <typename MakeStream>
void fuzz_stream(const std::uint8_t* data, std::size_t size, MakeStream make_stream) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = fuzz_records(bytes, size + 1, make_stream);
  MUSTER_CHECK(fuzz_records(bytes, 1, make_stream) == whole);
  MUSTER_CHECK(fuzz_records(bytes, 3, make_stream) == whole);
}

}  // namespace muster
