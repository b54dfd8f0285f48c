// The records of plain lines: each line is a text. A line may be a text of its own without any
// quoting, so nothing is unescaped. Blank lines are counted, because a person may wonder where they
// went.

#include <utility>

#include "base/text.h"
#include "dataset/json_fields.h"
#include "dataset/json_text.h"
#include "dataset/line_splitter.h"
#include "dataset/record_stream.h"

namespace muster {
namespace {

class LinesStream final : public RecordStream {
 public:
  LinesStream(std::unique_ptr<ByteSource> source, RecordStreamOptions options)
      : options_(std::move(options)), lines_(std::move(source), options_.record_size_max) {}

  Result<bool> next(TextRecord& record) override {
    Line line;
    for (;;) {
      if (!MUSTER_TRY(lines_.next(line))) {
        return false;
      }
      if (options_.takes_blank_lines || line.is_too_long || !trim(line.text).empty()) break;
      ++blank_count_;
    }
    record.line = line.number;
    record.id.clear();
    record.fields.clear();
    record.fault.reset();
    if (line.is_too_long) {
      set_fault(record, too_long_message(options_.record_size_max));
    } else if (auto fault = utf8_fault(line.text)) {
      set_fault(record, *std::move(fault));
    } else {
      record.text.assign(line.text);
      for (const auto& name : options_.keep) keep(name, record);
    }
    return true;
  }

  std::uint64_t size_consumed() const override { return lines_.size_consumed(); }
  std::uint64_t blank_count() const override { return blank_count_; }
  std::vector<KeptName> kept_names() const override {
    return {options_.keep.size(), KeptName{.is_met = true}};
  }

 private:
  // Of a line that is its text: TextReader::open takes no other name.
  void keep(const std::string& name, TextRecord& record) {
    value_.clear();
    append_json_string(record.text, value_);
    append_kept_field(name, value_, record.fields);
  }

  RecordStreamOptions options_;
  LineSplitter lines_;
  std::uint64_t blank_count_ = 0;
  std::string value_;  // of a kept field, as JSON
};

}  // namespace

std::unique_ptr<RecordStream> make_lines_stream(std::unique_ptr<ByteSource> source,
                                                RecordStreamOptions options) {
  return std::make_unique<LinesStream>(std::move(source), std::move(options));
}

}  // namespace muster
