// Replies are one file: each line tells its place by itself, so there is no index beside it.

#include <utility>

#include "jobs/growing_text.h"
#include "jobs/output_parts.h"
#include "jobs/reply_line.h"

namespace muster {
namespace {

class ReplyParts final : public OutputParts {
 public:
  explicit ReplyParts(GrowingText out) : out_(std::move(out)) {}

  Status append(WindowRecord& record, std::uint64_t row) override {
    record.entry.row = std::nullopt;
    if (!record.result.reply.empty()) record.entry.row = row;
    line_.clear();
    append_reply_line(record, line_);
    return out_.append(line_);
  }

  Status mark(RunStep& step) override {
    auto mark = MUSTER_TRY(out_.mark());
    step.vectors_size = mark.size;
    step.vectors_hash = std::move(mark.hash);
    return Done{};
  }

  Status make_durable() const override { return out_.make_durable(); }

  Status finish(OutputRecord& record) override {
    record.vectors_size = out_.size();
    record.vectors_hash = out_.whole_hash();
    return Done{};
  }

 private:
  GrowingText out_;
  std::string line_;
};

}  // namespace

OpenParts reply_parts(const RunFiles& files) {
  return [=](const RunStep& step) -> Result<std::unique_ptr<OutputParts>> {
    auto out = MUSTER_TRY(GrowingText::open(files.out_part, step.vectors_size));
    return std::unique_ptr<OutputParts>(std::make_unique<ReplyParts>(std::move(out)));
  };
}

}  // namespace muster
