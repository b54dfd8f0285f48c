#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "dataset/byte_source.h"
#include "dataset/text_reader.h"

namespace muster {

/// What became of a field that is to be kept.
struct KeptName {
  bool is_met = false;       // a record has had it
  std::string missing = {};  // what to say where none has: of the first record that lacked it
};

/// The records of one input, whatever its format.
///
/// Threads: not thread-safe.
class RecordStream {
 public:
  virtual ~RecordStream() = default;

  /// The next record: fills `text`, `id`, `fields`, `line` and `fault`, whose message does not yet
  /// name the place, and sets `is_conversation`, which is false before. False at the end.
  ///
  /// Errors: those of the source; InvalidArgument for a CSV that lacks the column.
  virtual Result<bool> next(TextRecord& record) = 0;

  virtual std::uint64_t size_consumed() const = 0;

  /// Blank lines that were passed over, where the format counts them.
  virtual std::uint64_t blank_count() const { return 0; }

  /// For each of `RecordStreamOptions::keep`, as far as records have been read.
  virtual std::vector<KeptName> kept_names() const = 0;
};

/// What a stream looks for in a record.
struct RecordStreamOptions {
  std::string input;                    // its name, for messages
  std::string field;                    // Jsonl and Csv
  std::optional<std::string> id_field;  // Jsonl and Csv
  std::vector<std::string> keep = {};   // fields; of Lines the text alone
  bool takes_messages = false;          // Jsonl
  bool refuses_doubled_keys = false;    // Jsonl; else the last one counts
  bool takes_blank_lines = false;       // Lines
  std::uint64_t record_size_max = 0;
};

std::unique_ptr<RecordStream> make_lines_stream(std::unique_ptr<ByteSource> source,
                                                RecordStreamOptions options);
std::unique_ptr<RecordStream> make_jsonl_stream(std::unique_ptr<ByteSource> source,
                                                RecordStreamOptions options);
/// `separator` is ',' for Csv and '\t' for Tsv.
std::unique_ptr<RecordStream> make_csv_stream(std::unique_ptr<ByteSource> source,
                                              RecordStreamOptions options, char separator);

/// Makes `record` a bad one: no text, no id, no fields, and the reason.
void set_fault(TextRecord& record, std::string message);

/// "longer than 67,108,864 bytes".
std::string too_long_message(std::uint64_t size_max);

/// "invalid UTF-8 at byte 12" (bytes count from 1, as lines do); nullopt for valid text.
std::optional<std::string> utf8_fault(std::string_view text);

/// `no field "txt"; nearest is "text"; --field names another`; without a near name, those that
/// there are. `kind` is "field" or "column"; `flag` is where the name comes from.
std::string missing_name_message(std::string_view kind, std::string_view wanted,
                                 const std::vector<std::string>& present, std::string_view flag);

}  // namespace muster
