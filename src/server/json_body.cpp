// Values are read in the order in which the body has them, by simdjson's on-demand parser; nothing
// is built that a route did not ask for. A name is found by a linear search, since no route has
// more than a few fields, and a bit for each field finds repetitions. simdjson reads past the end
// of its input, so the body is lengthened by its padding; what follows the object is refused, not
// ignored.

#include "server/json_body.h"

#include <fmt/format.h>

#include <bitset>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace muster {
namespace {

// Of one object of a request: far more than any of ours has.
constexpr std::size_t kFieldsMost = 64;

std::string_view type_name(simdjson::ondemand::json_type type) {
  switch (type) {
    case simdjson::ondemand::json_type::array:
      return "an array";
    case simdjson::ondemand::json_type::object:
      return "an object";
    case simdjson::ondemand::json_type::number:
      return "a number";
    case simdjson::ondemand::json_type::string:
      return "a string";
    case simdjson::ondemand::json_type::boolean:
      return "a boolean";
    case simdjson::ondemand::json_type::null:
      return "null";
  }
  return "something else";
}

// What messages call a field of the object that stands at `path`; empty: the body.
std::string place_of(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

ApiError unknown_field(std::string_view path, std::string_view name,
                       std::span<const BodyField> fields) {
  constexpr std::size_t kShownMost = 100;  // bytes of a name that a client made up
  std::vector<std::string> known;
  known.reserve(fields.size());
  for (const BodyField& field : fields) known.emplace_back(field.name);
  const auto place = place_of(path, name.substr(0, kShownMost));
  std::string message = fmt::format("Unrecognized request argument supplied: {}", place);
  if (const auto nearest = nearest_name(name.substr(0, kShownMost), known)) {
    message += fmt::format("; did you mean {}?", place_of(path, *nearest));
  }
  return wrong_field(place, "unknown_parameter", std::move(message));
}

// The name is unescaped before it is compared, so that no spelling of a field slips past the check
// for duplicates. simdjson leaves half of a surrogate pair in a name as bytes that are no UTF-8;
// messages quote names, so these are refused here.
ApiStatus read_field(simdjson::ondemand::field& field, std::string_view path,
                     std::span<const BodyField> fields, std::bitset<kFieldsMost>& seen) {
  std::string_view name;
  if (const auto fault = field.unescaped_key().get(name)) return broken_json(fault);
  if (invalid_utf8_at(name)) return broken_json(simdjson::STRING_ERROR);
  std::size_t index = 0;
  while (index < fields.size() && fields[index].name != name) ++index;
  if (index == fields.size()) return unknown_field(path, name, fields);
  if (seen[index]) {
    const auto place = place_of(path, name);
    return wrong_field(place, "duplicate_parameter", fmt::format("'{}' is given twice.", place));
  }
  seen[index] = true;
  JsonValue value = field.value();
  bool is_null = false;
  if (const auto fault = value.is_null().get(is_null)) return broken_json(fault);
  if (is_null) return Done{};
  return fields[index].read(value);
}

ApiStatus read_fields(simdjson::ondemand::object& object, std::string_view path,
                      std::span<const BodyField> fields) {
  MUSTER_CHECK(fields.size() <= kFieldsMost);
  std::bitset<kFieldsMost> seen;
  for (auto item : object) {
    simdjson::ondemand::field field;
    if (const auto fault = std::move(item).get(field)) return broken_json(fault);
    MUSTER_TRY(read_field(field, path, fields, seen));
  }
  return Done{};
}

// Whether something but white space follows the object that `body` begins with. What stands within
// that object is not looked at, but for strings, whose brackets do not count; brackets that do not
// fit each other end nothing.
bool has_trailing_content(std::string_view body) {
  std::string brackets;  // that are open
  bool is_in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      brackets += c;
    } else if (c == '}' || c == ']') {
      if (brackets.empty() || brackets.back() != (c == '}' ? '{' : '[')) return false;
      brackets.pop_back();
      if (brackets.empty())
        return body.find_first_not_of(" \t\r\n", i + 1) != std::string_view::npos;
    }
  }
  return false;
}

// A parser's own memory is half of what reading a short body takes: a thread keeps its last one,
// unless a long body has made it large.
class KeptParser {
 public:
  KeptParser() : parser_(std::exchange(kept(), nullptr)) {
    if (!parser_) parser_ = std::make_unique<simdjson::ondemand::parser>();
  }
  KeptParser(const KeptParser&) = delete;
  KeptParser& operator=(const KeptParser&) = delete;
  ~KeptParser() {
    constexpr std::size_t kBodyMost = 64 << 10;
    if (parser_->capacity() <= kBodyMost) kept() = std::move(parser_);
  }

  simdjson::ondemand::parser& operator*() { return *parser_; }

 private:
  static std::unique_ptr<simdjson::ondemand::parser>& kept() {
    thread_local std::unique_ptr<simdjson::ondemand::parser> last;
    return last;
  }

  std::unique_ptr<simdjson::ondemand::parser> parser_;
};

}  // namespace

std::string_view key_of(std::string_view place) { return place.substr(place.rfind('.') + 1); }

ApiError broken_json(simdjson::error_code code) {
  return {.status = 400,
          .message = fmt::format("We could not parse the JSON body of your request: {}",
                                 simdjson::error_message(code))};
}

ApiError wrong_type(JsonValue& value, std::string_view name, std::string_view expected) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return wrong_field(name, "invalid_type",
                     fmt::format("Invalid type for '{}': expected {}, but got {} instead.", name,
                                 expected, type_name(type)));
}

// The position is checked at the end: what follows the object would else be ignored in silence.
ApiStatus read_body(std::string body, std::span<const BodyField> fields) {
  const std::size_t size = body.size();
  body.resize(size + simdjson::SIMDJSON_PADDING);
  KeptParser parser;
  simdjson::ondemand::document document;
  const simdjson::padded_string_view view(body.data(), size, body.size());
  if (const auto fault = (*parser).iterate(view).get(document)) return broken_json(fault);
  simdjson::ondemand::object object;
  if (const auto fault = document.get_object().get(object)) {
    // simdjson looks at the last bracket of all to see whether the object ends.
    const bool is_whole = fault == simdjson::INCOMPLETE_ARRAY_OR_OBJECT &&
                          has_trailing_content(std::string_view(body).substr(0, size));
    if (is_whole) return broken_json(simdjson::TRAILING_CONTENT);
    if (fault != simdjson::INCORRECT_TYPE) return broken_json(fault);
    return ApiError{.status = 400, .message = "The body of your request must be a JSON object."};
  }
  MUSTER_TRY(read_fields(object, {}, fields));
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return broken_json(simdjson::TRAILING_CONTENT);
  }
  return Done{};
}

ApiStatus read_object(JsonValue& value, std::string_view name, std::span<const BodyField> fields) {
  simdjson::ondemand::object object;
  if (const auto fault = value.get_object().get(object)) {
    if (fault != simdjson::INCORRECT_TYPE) return broken_json(fault);
    return wrong_type(value, name, "an object");
  }
  return read_fields(object, name, fields);
}

ApiResult<std::string> read_text(JsonValue& value, std::string_view name,
                                 std::uint64_t bytes_most) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type != simdjson::ondemand::json_type::string) return wrong_type(value, name, "a string");
  std::string_view text;
  if (const auto fault = value.get_string().get(text)) {
    if (fault != simdjson::STRING_ERROR) return broken_json(fault);
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': it holds an escape that is no character.", name));
  }
  if (text.size() > bytes_most) {
    return wrong_field(
        name, "string_above_max_length",
        fmt::format("Invalid '{}': string too long. Expected at most {} bytes, but got {}.", name,
                    with_thousands(bytes_most), with_thousands(text.size())));
  }
  // The second half of a surrogate pair passes the parser as three bytes that are no UTF-8.
  if (invalid_utf8_at(text)) {
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': it holds half of a surrogate pair.", name));
  }
  return std::string(text);
}

ApiResult<bool> read_bool(JsonValue& value, std::string_view name) {
  bool is_so = false;
  if (value.get_bool().get(is_so) != simdjson::SUCCESS) return wrong_type(value, name, "a boolean");
  return is_so;
}

// First as integers: a double does not hold all of those that are above 2^53.
std::optional<WholeNumber> whole_number(JsonValue& value) {
  std::uint64_t natural = 0;
  if (value.get_uint64().get(natural) == simdjson::SUCCESS) return WholeNumber{natural, false};
  std::int64_t integer = 0;
  if (value.get_int64().get(integer) == simdjson::SUCCESS) {
    return WholeNumber{0 - static_cast<std::uint64_t>(integer), integer < 0};
  }
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS) return std::nullopt;
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  const double magnitude = std::fabs(number);
  if (magnitude != std::floor(magnitude) || !(magnitude < kEnd)) return std::nullopt;
  return WholeNumber{static_cast<std::uint64_t>(magnitude), number < 0};
}

ApiResult<std::uint64_t> read_integer(JsonValue& value, std::string_view name, std::uint64_t least,
                                      std::uint64_t most) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type != simdjson::ondemand::json_type::number) return wrong_type(value, name, "an integer");
  const auto number = whole_number(value);
  if (!number || number->is_negative || number->magnitude < least || number->magnitude > most) {
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': expected an integer from {} to {}.", name, least,
                                   with_thousands(most)));
  }
  return number->magnitude;
}

ApiResult<double> read_number(JsonValue& value, std::string_view name, double least, double most) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type != simdjson::ondemand::json_type::number) return wrong_type(value, name, "a number");
  double number = 0;
  const bool is_read = value.get_double().get(number) == simdjson::SUCCESS;
  if (is_read && number >= least && number <= most) return number;
  return wrong_field(
      name, "invalid_value",
      fmt::format("Invalid '{}': expected a number from {} to {}.", name, least, most));
}

}  // namespace muster
