// After a power failure a journal may know of rows that never reached the disk. Each step of the
// journal has a hash of what it added to each part file; both files are read once, front to end,
// and the first step that does not match ends what is kept.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "dataset/byte_source.h"
#include "dataset/run_journal.h"

namespace muster {
namespace {

// Reads a part file from front to end, a step at a time.
class PartReader {
 public:
  explicit PartReader(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), buffer_(std::size_t{1} << 20) {}

  // Hash128 of the bytes from the place reached up to `end`; what a file that ends before has is
  // hashed.
  Result<std::string> hash_until(std::uint64_t end) {
    Hash128 hash;
    while (source_->size_consumed() < end) {
      const auto wanted = std::min<std::uint64_t>(end - source_->size_consumed(), buffer_.size());
      const auto count = MUSTER_TRY(source_->read(std::span(buffer_).first(wanted)));
      if (count == 0) break;
      hash.update(std::string_view(buffer_.data(), count));
    }
    return hash.hex();
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
};

}  // namespace

Result<std::size_t> count_intact_steps(std::span<const RunStep> steps, const RunParts& parts) {
  if (steps.empty()) {
    return std::size_t{0};  // the run may have ended before it made its part files
  }
  PartReader vectors(MUSTER_TRY(open_raw_source(parts.vectors.string())));
  std::optional<PartReader> index;
  if (!parts.index.empty()) index.emplace(MUSTER_TRY(open_raw_source(parts.index.string())));
  MUSTER_TRY(vectors.hash_until(parts.vectors_header_size));
  std::size_t count = 0;
  for (const auto& step : steps) {
    if (MUSTER_TRY(vectors.hash_until(step.vectors_size)) != step.vectors_hash) break;
    if (index && MUSTER_TRY(index->hash_until(step.index_size)) != step.index_hash) break;
    ++count;
  }
  return count;
}

}  // namespace muster
