#pragma once

#include <string>
#include <string_view>

#include "metrics/families.h"

namespace muster {

/// Appends `value` as it may stand between the quotes of a label: `\`, `"` and line ends are
/// escaped; bytes that are no UTF-8, and control characters, become U+FFFD.
///
/// Source: Prometheus, text exposition format 0.0.4.
void append_label_value(std::string& text, std::string_view value);

/// Appends `name="value"` with a comma before it unless `labels` is empty.
void append_label(std::string& labels, std::string_view name, std::string_view value);

/// Writes families one after another. The HELP and TYPE lines of a family come with its first
/// series, so that a family without series leaves no trace.
///
/// Threads: not thread-safe.
class MetricText {
 public:
  explicit MetricText(std::string_view prefix) : prefix_(prefix) {}

  void reserve(std::size_t size) { text_.reserve(size); }

  /// What follows belongs to this family. The arguments must live until the next call.
  void begin_family(std::string_view name, MetricType type, std::string_view help);
  void begin_family(const ComputedFamily& family) {
    begin_family(family.name, family.type, family.help);
  }

  /// One line: the labels of the device, then those of the series; either may be empty. A value
  /// that is not finite is left out.
  void add(std::string_view device_labels, std::string_view labels, double value);
  /// The same for a histogram's parts: "_bucket", "_sum", "_count".
  void add_part(std::string_view suffix, std::string_view labels, double value);

  std::string take() { return std::move(text_); }

 private:
  void add_line(std::string_view suffix, std::string_view device_labels, std::string_view labels,
                double value);

  std::string text_;
  std::string_view prefix_;
  std::string_view name_;
  std::string_view help_;
  MetricType type_ = MetricType::Gauge;
  bool has_header_ = false;
};

}  // namespace muster
