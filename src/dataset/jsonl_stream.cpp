// The records of JSON lines: an object each. A line that is no object, or lacks the field, is a
// fault of that record; the lines after it are read.

#include <fmt/format.h>
#include <simdjson.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "dataset/json_fields.h"
#include "dataset/line_splitter.h"
#include "dataset/record_stream.h"

namespace muster {
namespace {

namespace dom = simdjson::dom;

static_assert(LineSplitter::kPadding >= simdjson::SIMDJSON_PADDING);

// Where a conversation stands, in whatever program's files. Source: OpenAI's API, chat completions.
constexpr std::string_view kMessages = "messages";

// simdjson's words: "TAPE_ERROR: The JSON document has an improper structure: …".
std::string json_fault(simdjson::error_code code) {
  if (code == simdjson::NUMBER_ERROR) {
    return "not JSON: a number is malformed or beyond 64 bits";
  }
  std::string_view words = simdjson::error_message(code);
  if (const auto colon = words.find(": "); colon != std::string_view::npos) {
    words.remove_prefix(colon + 2);
  }
  if (words.ends_with('.')) words.remove_suffix(1);
  return fmt::format("not JSON: {}", words);
}

// The whole line is parsed (DOM, not on demand), so that a line that is broken behind the wanted
// field is told and not taken.
class JsonlStream final : public RecordStream {
 public:
  JsonlStream(std::unique_ptr<ByteSource> source, RecordStreamOptions options)
      : options_(std::move(options)),
        lines_(std::move(source), options_.record_size_max),
        kept_(options_.keep.size()) {}

  Result<bool> next(TextRecord& record) override {
    Line line;
    do {
      if (!MUSTER_TRY(lines_.next(line))) {
        return false;
      }
    } while (!line.is_too_long && trim(line.text).empty());
    record.line = line.number;
    record.text.clear();
    record.id.clear();
    record.fields.clear();
    record.fault.reset();
    if (line.is_too_long) {
      set_fault(record, too_long_message(options_.record_size_max));
    } else if (const auto read = read_object(line.text, record); !read) {
      set_fault(record, read.error().message);
    }
    return true;
  }

  std::uint64_t size_consumed() const override { return lines_.size_consumed(); }
  std::vector<KeptName> kept_names() const override { return kept_; }

 private:
  Status read_object(std::string_view line, TextRecord& record) {
    if (auto fault = utf8_fault(line)) {
      return Error{ErrorKind::InvalidArgument, *std::move(fault)};
    }
    dom::element root;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(line.data());
    if (const auto code =
            parser_.parse(bytes, line.size(), /*realloc_if_needed=*/false).get(root)) {
      return Error{ErrorKind::InvalidArgument, json_fault(code)};
    }
    dom::object object;
    if (root.get(object) != simdjson::SUCCESS) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("not a JSON object but {}", json_type_words(root.type()))};
    }
    if (options_.refuses_doubled_keys) {
      if (const auto key = doubled_json_key(object)) return given_twice(*key);
    }
    const auto messages = find_messages(object);
    record.is_conversation = messages.has_value();
    if (messages) {
      MUSTER_TRY(read_messages(*messages, record.text));
    } else {
      const auto text = MUSTER_TRY(find(object, options_.field, "--field"));
      MUSTER_TRY(read_text(text, record.text));
    }
    if (options_.id_field) {
      const auto id = MUSTER_TRY(find(object, *options_.id_field, "--id-field"));
      MUSTER_TRY(read_id(id, record.id));
    }
    for (std::size_t i = 0; i < options_.keep.size(); ++i) {
      MUSTER_TRY(keep_field(object, i, record.fields));
    }
    return Done{};
  }

  Status check_way(dom::object object, std::string_view name) const {
    if (!options_.refuses_doubled_keys) return Done{};
    if (const auto key = doubled_json_key_on_way(object, name)) return given_twice(*key);
    return Done{};
  }

  Result<dom::element> find(dom::object object, std::string_view name,
                            std::string_view flag) const {
    MUSTER_TRY(check_way(object, name));
    if (const auto found = find_json_field(object, name)) return *found;
    return Error{ErrorKind::InvalidArgument,
                 missing_name_message("field", name, json_field_names(object), flag)};
  }

  std::optional<dom::element> find_messages(dom::object object) const {
    if (!options_.takes_messages) return std::nullopt;
    const auto value = find_json_field(object, kMessages);
    return value && !value->is_null() ? value : std::nullopt;
  }

  // As JSON again: what messages are is for whoever renders them.
  static Status read_messages(dom::element value, std::string& text) {
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) {
      return wrong_type(kMessages, value, "a list of messages");
    }
    if (const auto place = doubled_json_key_within(value)) {
      return given_twice(fmt::format("{}{}", kMessages, *place));
    }
    return take_string(kMessages, simdjson::minify(list), text);
  }

  // A record need not have it; that none has is told at the end.
  Status keep_field(dom::object object, std::size_t index, std::string& fields) {
    const auto& name = options_.keep[index];
    auto& kept = kept_[index];
    MUSTER_TRY(check_way(object, name));
    const auto value = find_json_field(object, name);
    if (!value) {
      if (!kept.is_met && kept.missing.empty()) {
        kept.missing = missing_name_message("field", name, json_field_names(object), "--keep");
      }
      return Done{};
    }
    kept.is_met = true;
    value_.clear();
    if (!append_json_value(*value, value_)) {
      return wrong_type(name, *value, "a string, a number, true, false or a list of these");
    }
    if (!value_.empty()) append_kept_field(name, value_, fields);
    return Done{};
  }

  Status read_text(dom::element value, std::string& text) const {
    std::string_view content;
    if (value.get(content) != simdjson::SUCCESS) {
      return wrong_type(options_.field, value, "a string");
    }
    return take_string(options_.field, content, text);
  }

  Status read_id(dom::element value, std::string& id) const {
    std::string_view content;
    std::int64_t number = 0;
    std::uint64_t large = 0;
    if (value.get(content) == simdjson::SUCCESS) {
      return take_string(*options_.id_field, content, id);
    }
    if (value.get(number) == simdjson::SUCCESS) {
      id = std::to_string(number);
    } else if (value.get(large) == simdjson::SUCCESS) {
      id = std::to_string(large);
    } else {
      return wrong_type(*options_.id_field, value, "a string or an integer");
    }
    return Done{};
  }

  static Error given_twice(std::string_view field) {
    return Error{ErrorKind::InvalidArgument, fmt::format("field \"{}\" is given twice", field)};
  }

  static Error wrong_type(std::string_view field, dom::element value, std::string_view wanted) {
    return Error{ErrorKind::InvalidArgument, fmt::format("field \"{}\" is {}, not {}", field,
                                                         json_type_words(value.type()), wanted)};
  }

  // An escape can name half a surrogate pair, which no valid text holds.
  static Status take_string(std::string_view field, std::string_view content, std::string& out) {
    if (invalid_utf8_at(content)) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("field \"{}\" holds half of a surrogate pair", field)};
    }
    out.assign(content);
    return Done{};
  }

  RecordStreamOptions options_;
  LineSplitter lines_;
  dom::parser parser_;
  std::vector<KeptName> kept_;  // of options_.keep
  std::string value_;           // of one of them, as JSON
};

}  // namespace

std::unique_ptr<RecordStream> make_jsonl_stream(std::unique_ptr<ByteSource> source,
                                                RecordStreamOptions options) {
  return std::make_unique<JsonlStream>(std::move(source), std::move(options));
}

}  // namespace muster
