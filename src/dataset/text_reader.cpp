// One input after another, each by what its name or its first bytes say it is. Before a run begins,
// every regular file is looked at (it exists, can be opened, begins as a text does), because a
// fault in the last input would otherwise show after hours of work. Of a pipe nothing can be looked
// at beforehand; it is checked when it is read.

#include "dataset/text_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "dataset/compressed_source.h"
#include "dataset/encoding_look.h"
#include "dataset/json_look.h"
#include "dataset/record_stream.h"

namespace muster {
namespace {

constexpr std::string_view kTextField = "text";  // what the one field of a plain line is called

Error missing_input(const std::string& input) {
  constexpr std::size_t kNamesMax = 10'000;  // a folder of millions must not delay the message
  const std::filesystem::path path(input);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end && names.size() < kNamesMax; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  const auto nearest = nearest_name(path.filename().string(), names);
  return Error{ErrorKind::NotFound, nearest ? fmt::format("{}: no such file; nearest is {}", input,
                                                          (path.parent_path() / *nearest).string())
                                            : fmt::format("{}: no such file", input)};
}

// What cannot be text is told before a model is loaded; a broken file when it is read.
Status check_first_bytes(const std::string& input) {
  const auto source = open_raw_source(input);
  std::string head(kMagicSize, '\0');
  const auto count = source ? (*source)->read(head) : Result<std::size_t>(source.error());
  if (!count) return Done{};
  head.resize(*count);
  return check_readable(head, input);
}

// The size of a file that can be read; nullopt for a pipe or a device.
Result<std::optional<std::uint64_t>> check_input(const std::string& input) {
  struct stat info {};
  if (::stat(input.c_str(), &info) != 0) {
    return errno == ENOENT ? missing_input(input) : system_error(input, "open", errno);
  }
  if (S_ISDIR(info.st_mode)) {
    return system_error(input, "read", EISDIR);
  }
  if (::access(input.c_str(), R_OK) != 0) {
    return system_error(input, "open", errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return std::optional<std::uint64_t>();
  }
  MUSTER_TRY(check_first_bytes(input));
  return std::optional(static_cast<std::uint64_t>(info.st_size));
}

Status check_standard_input() {
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_WRONLY) return Done{};
  return Error{ErrorKind::InvalidArgument,
               "standard input (-) is closed: give it the texts through a pipe or with <, or name "
               "a file"};
}

TextFormat format_of(const std::string& input) {
  std::filesystem::path path(input);
  if (path.extension() == ".gz" || path.extension() == ".zst") {
    path.replace_extension();
  }
  const auto ending = path.extension();
  if (ending == ".jsonl" || ending == ".ndjson") return TextFormat::Jsonl;
  if (ending == ".csv") return TextFormat::Csv;
  if (ending == ".tsv") return TextFormat::Tsv;
  return TextFormat::Lines;
}

std::unique_ptr<RecordStream> make_stream(std::unique_ptr<ByteSource> source, TextFormat format,
                                          RecordStreamOptions options) {
  switch (format) {
    case TextFormat::Jsonl:
      return make_jsonl_stream(std::move(source), std::move(options));
    case TextFormat::Csv:
      return make_csv_stream(std::move(source), std::move(options), ',');
    case TextFormat::Tsv:
      return make_csv_stream(std::move(source), std::move(options), '\t');
    case TextFormat::Lines:
      break;
  }
  return make_lines_stream(std::move(source), std::move(options));
}

// Bytes from the front of an input, as many as tell whether it is JSON, and the whole of it again.
struct LookedAt {
  JsonLook look = JsonLook::Text;
  std::unique_ptr<ByteSource> source;
};

Result<LookedAt> look_at(std::unique_ptr<ByteSource> source) {
  constexpr std::size_t kHeadMax = 64 * 1024;  // an array that is well formed so far is JSON
  constexpr std::size_t kReadSize = 4096;
  std::string head;
  auto look = JsonLook::Open;
  while (look == JsonLook::Open && head.size() < kHeadMax) {
    const auto size = head.size();
    head.resize(size + kReadSize);
    const auto count = MUSTER_TRY(source->read(std::span(head).subspan(size)));
    head.resize(size + count);
    look = look_for_json(head, /*is_whole=*/count == 0);
  }
  return LookedAt{look == JsonLook::Open ? JsonLook::Document : look,
                  with_head(std::move(head), std::move(source))};
}

Status check_look(JsonLook look, const std::string& input) {
  if (look == JsonLook::Text) return Done{};
  const auto name = input_name(input);
  if (look == JsonLook::Lines) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: begins with a JSON object: --format jsonl reads its texts, "
                             "--format lines takes each line as it is",
                             name)};
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: is one JSON document: --format jsonl wants an object on each line "
                           "(jq -c '.[]' makes it so of an array), --format lines takes each line "
                           "as it is",
                           name)};
}

bool may_be_json(const TextReaderOptions& options, const std::string& input) {
  return !options.format && format_of(input) == TextFormat::Lines;
}

Result<std::unique_ptr<ByteSource>> open_decoded(const std::string& input,
                                                 const std::function<bool()>& is_interrupted = {}) {
  auto raw = MUSTER_TRY(open_raw_source(input, is_interrupted));
  return decode_source(std::move(raw), input);
}

// A broken stream is told with its place when it is read.
Status look_at_file(const TextReaderOptions& options, const std::string& input) {
  auto source = open_decoded(input);
  if (!source) return Done{};
  std::string head(kEncodingHead, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const auto count = (*source)->read(std::span(head).subspan(size));
    if (!count) return Done{};
    if (*count == 0) break;
    size += *count;
  }
  head.resize(size);
  if (const auto encoding = look_for_wide_encoding(head)) {
    return wide_encoding_refusal(input, *encoding);
  }
  if (!may_be_json(options, input)) return Done{};
  const auto looked_at = look_at(with_head(std::move(head), *std::move(source)));
  return looked_at ? check_look(looked_at->look, input) : Status(Done{});
}

bool is_lines(const TextReaderOptions& options, const std::string& input) {
  return options.format.value_or(format_of(input)) == TextFormat::Lines;
}

// purpose: " to keep, only \"text\"".
Error no_such_field(const std::string& input, const std::string& name, const std::string& purpose) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: a plain line has no field \"{}\"{}: --format says what else it is",
                           input_name(input), name, purpose)};
}

// Plain lines have one field.
Status check_fields_of_lines(const TextReaderOptions& options, const std::string& input) {
  if (!is_lines(options, input)) return Done{};
  for (const auto& name : options.keep) {
    if (name == kTextField) continue;
    return no_such_field(input, name, fmt::format(" to keep, only \"{}\"", kTextField));
  }
  if (options.id_field && options.is_id_field_asked_for) {
    return no_such_field(input, *options.id_field, " for an id");
  }
  return Done{};
}

// Among other inputs plain lines do not make the name useless.
Status check_field_of_text(const TextReaderOptions& options) {
  if (!options.is_field_asked_for || options.field == kTextField) return Done{};
  for (const auto& input : options.inputs) {
    if (!is_lines(options, input)) return Done{};
  }
  return no_such_field(options.inputs.front(), options.field,
                       fmt::format(", only \"{}\"", kTextField));
}

class FilesReader final : public TextReader {
 public:
  FilesReader(TextReaderOptions options, std::optional<std::uint64_t> size_total)
      : options_(std::move(options)), size_total_(size_total) {}

  Result<bool> next(TextRecord& record) override {
    auto outcome = next_of_any(record);
    if (!outcome) {
      stream_.reset();
      input_index_ = options_.inputs.size();
    }
    return outcome;
  }

  std::optional<std::uint64_t> size_total() const override { return size_total_; }

  std::uint64_t size_consumed() const override {
    return size_finished_ + (stream_ ? stream_->size_consumed() : 0);
  }

  std::uint64_t blank_count() const override {
    return blank_finished_ + (stream_ ? stream_->blank_count() : 0);
  }

  std::vector<std::string> fields_not_met() const override {
    auto names = kept_finished_;
    if (stream_) add_kept(stream_->kept_names(), names);
    std::vector<std::string> sentences;
    for (auto& name : names) {
      if (!name.is_met && !name.missing.empty()) sentences.push_back(std::move(name.missing));
    }
    return sentences;
  }

 private:
  Result<bool> next_of_any(TextRecord& record) {
    while (input_index_ < options_.inputs.size()) {
      if (!stream_) {
        MUSTER_TRY(open_stream());
      }
      record.is_conversation = false;
      if (MUSTER_TRY(stream_->next(record))) {
        record.input_index = static_cast<std::uint32_t>(input_index_);
        if (record.fault) {
          const auto place = place_name(options_.inputs[input_index_], record.line);
          record.fault->message = fmt::format("{}: {}", place, record.fault->message);
        }
        return true;
      }
      size_finished_ += stream_->size_consumed();
      blank_finished_ += stream_->blank_count();
      add_kept(stream_->kept_names(), kept_finished_);
      stream_.reset();
      ++input_index_;
    }
    return false;
  }

  static void add_kept(std::vector<KeptName> names, std::vector<KeptName>& all) {
    if (names.empty()) return;
    all.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      all[i].is_met |= names[i].is_met;
      if (all[i].missing.empty()) all[i].missing = std::move(names[i].missing);
    }
  }

  Status open_stream() {
    const auto& input = options_.inputs[input_index_];
    auto source = MUSTER_TRY(open_decoded(input, options_.is_interrupted));
    source = refuse_wide_encoding(std::move(source), input);
    if (may_be_json(options_, input)) {
      auto looked_at = MUSTER_TRY(look_at(std::move(source)));
      MUSTER_TRY(check_look(looked_at.look, input));
      source = std::move(looked_at.source);
    }
    stream_ = make_stream(std::move(source), options_.format.value_or(format_of(input)),
                          RecordStreamOptions{.input = input_name(input),
                                              .field = options_.field,
                                              .id_field = options_.id_field,
                                              .keep = options_.keep,
                                              .takes_messages = options_.takes_messages &&
                                                                !options_.is_field_asked_for,
                                              .refuses_doubled_keys = options_.takes_messages,
                                              .takes_blank_lines = options_.takes_blank_lines,
                                              .record_size_max = options_.record_size_max});
    return Done{};
  }

  TextReaderOptions options_;
  std::optional<std::uint64_t> size_total_;
  std::size_t input_index_ = 0;
  std::unique_ptr<RecordStream> stream_;  // of the input at input_index_, once it is opened
  std::uint64_t size_finished_ = 0;       // of the inputs before it
  std::uint64_t blank_finished_ = 0;
  std::vector<KeptName> kept_finished_;
};

}  // namespace

Result<std::unique_ptr<TextReader>> TextReader::open(TextReaderOptions options) {
  if (options.inputs.empty()) {
    return Error{ErrorKind::InvalidArgument, "no input is named"};
  }
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1) {
    return Error{ErrorKind::InvalidArgument, "standard input (-) is named twice"};
  }
  std::optional<std::uint64_t> size_total = 0;
  for (const auto& input : options.inputs) {
    std::optional<std::uint64_t> size;
    if (input == "-") {
      MUSTER_TRY(check_standard_input());
    } else {
      size = MUSTER_TRY(check_input(input));
    }
    // What a pipe holds can be read only once.
    if (size) MUSTER_TRY(look_at_file(options, input));
    // A slip in the name of a file makes plain lines of it, which is told better before.
    MUSTER_TRY(check_fields_of_lines(options, input));
    size_total = size && size_total ? std::optional(*size_total + *size) : std::nullopt;
  }
  MUSTER_TRY(check_field_of_text(options));
  return std::unique_ptr<TextReader>(std::make_unique<FilesReader>(std::move(options), size_total));
}

std::string with_skip_bad_hint(const std::string& message) {
  return message + "; --skip-bad goes on without such records";
}

Error stopping_fault(const TextRecord& record) {
  MUSTER_CHECK(record.fault);
  return Error{record.fault->kind, with_skip_bad_hint(record.fault->message)};
}

std::string place_name(const std::string& input, std::uint64_t line) {
  return fmt::format("{}:{}", input_name(input), line);
}

}  // namespace muster
