// Formatting of the exposition format. Counters are printed without an exponent up to 2^53, because
// people read them too.

#include "metrics/metric_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD in UTF-8

void append_escaped(std::string& text, std::string_view valid_utf8) {
  for (const char byte : valid_utf8) {
    if (byte == '\\') {
      text += "\\\\";
    } else if (byte == '"') {
      text += "\\\"";
    } else if (byte == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) {
      // A terminal that shows the scraped text must not obey a process's name.
      text += kReplacement;
    } else {
      text += byte;
    }
  }
}

// Counts and bytes without an exponent: people read these lines too.
void append_number(std::string& text, double value) {
  constexpr double kWholeMax = 9007199254740992.0;  // 2^53: every whole number up to here is exact
  std::array<char, 32> digits{};
  const bool is_whole = std::trunc(value) == value && std::abs(value) <= kWholeMax;
  const auto end = is_whole
                       ? std::to_chars(digits.data(), digits.data() + digits.size(),
                                       static_cast<std::int64_t>(value))
                             .ptr
                       : std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), end);
}

}  // namespace

// Bytes that are no UTF-8 are replaced one by one: Prometheus refuses a whole scrape for one of
// them.
void append_label_value(std::string& text, std::string_view value) {
  while (const auto broken = invalid_utf8_at(value)) {
    append_escaped(text, value.substr(0, *broken));
    text += kReplacement;
    value.remove_prefix(*broken + 1);
  }
  append_escaped(text, value);
}

void append_label(std::string& labels, std::string_view name, std::string_view value) {
  if (!labels.empty()) labels += ',';
  labels.append(name).append("=\"");
  append_label_value(labels, value);
  labels += '"';
}

void MetricText::begin_family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  type_ = type;
  help_ = help;
  has_header_ = false;
}

void MetricText::add(std::string_view device_labels, std::string_view labels, double value) {
  add_line("", device_labels, labels, value);
}

void MetricText::add_part(std::string_view suffix, std::string_view labels, double value) {
  add_line(suffix, "", labels, value);
}

// The header waits for the first value, so a family without any leaves no trace.
void MetricText::add_line(std::string_view suffix, std::string_view device_labels,
                          std::string_view labels, double value) {
  if (!std::isfinite(value)) return;
  if (!has_header_) {
    text_.append("# HELP ").append(prefix_).append(name_).append(" ").append(help_);
    text_.append("\n# TYPE ").append(prefix_).append(name_).append(" ");
    text_.append(metric_type_name(type_)).append("\n");
    has_header_ = true;
  }
  text_.append(prefix_).append(name_).append(suffix);
  if (!device_labels.empty() || !labels.empty()) {
    text_ += '{';
    text_.append(device_labels);
    if (!device_labels.empty() && !labels.empty()) text_ += ',';
    text_.append(labels);
    text_ += '}';
  }
  text_ += ' ';
  append_number(text_, value);
  text_ += '\n';
}

}  // namespace muster
