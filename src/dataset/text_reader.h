#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// How the records of an input are written. By the name's ending (after .gz / .zst is taken off):
/// .txt, .jsonl or .ndjson, .csv, .tsv; anything else and standard input are Lines.
enum class TextFormat : std::uint8_t { Lines, Jsonl, Csv, Tsv };

struct TextReaderOptions {
  std::vector<std::string> inputs = {};  // paths, or "-" for standard input (at most once)
  std::optional<TextFormat> format = std::nullopt;  // nullopt: by each input's name
  /// Jsonl: key of a string, or keys with dots between for objects within ("doc.text"); Csv: column
  /// of the header line.
  std::string field = "text";
  /// The same of an id: a string or an integer.
  std::optional<std::string> id_field = std::nullopt;
  /// Whoever asked for this input named `field`, or `id_field`, and did not only have it set for
  /// all that they do: where all inputs, or one of them, are Lines, that is refused.
  bool is_field_asked_for = false;
  bool is_id_field_asked_for = false;
  /// Fields that are kept beside the text, each once: strings, numbers, true, false and lists of
  /// them, as far as a record has them. Csv: columns, whose cells are strings. Of Lines the text is
  /// the one field, "text".
  std::vector<std::string> keep = {};
  /// Jsonl: a record with a list as `messages` is a conversation, unless `field` was asked for. A
  /// key that comes twice in a record, anywhere in its messages, or in an object that a field's
  /// dots lead into, is a fault: what is asked is not guessed.
  bool takes_messages = false;
  /// Lines: a line of blanks is a record like others. Else it is passed over and counted.
  bool takes_blank_lines = false;
  /// Bytes; a longer record is a bad one, not a dead program.
  std::uint64_t record_size_max = 64ULL << 20;
  /// As open_raw_source (byte_source.h) asks it.
  std::function<bool()> is_interrupted = {};
};

/// One text, or the reason why there is none at this place.
struct TextRecord {
  std::string text;               // valid UTF-8, without its line end; may be empty
  bool is_conversation = false;   // `text` is the JSON of its messages
  std::string id;                 // empty without id_field
  std::string fields;             // of `keep`, as a JSON object; empty where there is none
  std::uint32_t input_index = 0;  // of TextReaderOptions::inputs
  std::uint64_t line = 0;         // 1-based line where the record begins
  std::optional<Error> fault;     // set: `text` is empty; the message names input and line
};

/// Streams the records of several inputs, plain, gzip or zstd (known by their first bytes, several
/// members or frames in a row allowed). Memory does not grow with the input.
///
/// An input that is read as Lines because nobody said otherwise, and begins with a JSON object or
/// array, is refused with the format that would read it. So is an input that begins as UTF-16 or
/// UTF-32 do (encoding_look.h), with the words that make UTF-8 of it.
///
/// A record that is broken (not JSON, no such field, a number where the text should be, invalid
/// UTF-8, too long, a row with other than the header's number of cells) is returned with its
/// `fault`, and reading goes on after it. Blank lines are passed over. Csv and Tsv begin with a
/// header line; Tsv is quoted as Csv is. A UTF-8 byte order mark at the start of an input is
/// skipped; "\r\n" ends a line like "\n".
///
/// Threads: not thread-safe; owned by one loop.
/// Source: RFC 4180 (CSV; quoted fields may hold line ends), RFC 8259 (JSON), jsonlines.org.
class TextReader {
 public:
  /// Checks that every input exists and can be read, and looks for JSON and UTF-16 in the first
  /// bytes of the files among them, so that a slip in the last of ten names is told at once.
  ///
  /// Errors: NotFound with the nearest name in that folder; InvalidArgument (a folder, "-" twice or
  /// closed, JSON, UTF-16, fields of plain lines).
  static Result<std::unique_ptr<TextReader>> open(TextReaderOptions options);

  virtual ~TextReader() = default;

  /// The next record into `record` (its buffers are reused); false at the end of the last input.
  ///
  /// Errors: Corrupt (a broken gzip or zstd stream, with the input's name), InvalidArgument (a CSV
  /// header without the column, JSON or UTF-16 from a pipe), those of reading a file. After an
  /// error the reader is at its end.
  virtual Result<bool> next(TextRecord& record) = 0;

  /// Bytes of the inputs as they lie on disk, and how many have been consumed: for progress.
  /// nullopt when standard input or a pipe is one of them.
  virtual std::optional<std::uint64_t> size_total() const = 0;
  virtual std::uint64_t size_consumed() const = 0;

  /// Blank lines of Lines inputs that were passed over so far.
  virtual std::uint64_t blank_count() const = 0;

  /// Of `keep` those that no record had so far, each as a sentence with what there is instead.
  virtual std::vector<std::string> fields_not_met() const = 0;
};

/// The message about a record that ends a run, with the flag that would go on after it.
std::string with_skip_bad_hint(const std::string& message);
Error stopping_fault(const TextRecord& record);

/// "corpus.jsonl:7", "standard input:7": how a place in the input is named in messages.
std::string place_name(const std::string& input, std::uint64_t line);

}  // namespace muster
