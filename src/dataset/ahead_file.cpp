// Rows wait here for their turn. A slot is free again once its row is durable where it belongs, and
// only then: whatever a crash tears is a row that nobody has counted yet. Nothing else is moved, so
// each row is written here at most once.

#include "dataset/ahead_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/positioned_io.h"
#include "dataset/own_file.h"

namespace muster {
namespace {

// nullopt: no file, one that never became whole, or one of another run.
Result<std::optional<AheadContent>> read_of_run(const std::filesystem::path& path,
                                                const std::string& run) {
  const auto source = open_raw_source(path.string());
  if (!source) {
    if (source.error().kind == ErrorKind::NotFound) return std::optional<AheadContent>();
    return source.error();
  }
  auto content = MUSTER_TRY(read_ahead(**source, path.string()));
  if (content && content->run != run) content.reset();
  return content;
}

}  // namespace

AheadFile::AheadFile(std::filesystem::path path, std::string run)
    : path_(std::move(path)), run_(std::move(run)) {}

Result<std::unique_ptr<AheadFile>> AheadFile::reopen(const std::filesystem::path& path,
                                                     std::string run, std::uint64_t record_count) {
  const auto content = MUSTER_TRY(read_of_run(path, run));
  auto file = std::make_unique<AheadFile>(path, std::move(run));
  if (!content) return file;
  file->fd_ = MUSTER_TRY(open_own_file(path, O_RDWR));
  file->take_over(*content, record_count);
  return file;
}

// What is there counts. It may have survived the end of a process alone, so the next sync is due.
void AheadFile::take_over(const AheadContent& content, std::uint64_t record_count) {
  dim_ = content.dim;
  slot_count_ = content.slot_count;
  std::vector<bool> is_used(slot_count_);
  for (const auto& entry : content.entries) {
    if (entry.record < record_count) continue;
    is_used[entry.slot] = true;
    entries_.emplace(entry.record, Entry{entry.text_hash, entry.slot, /*is_durable=*/true});
  }
  for (auto slot = slot_count_; slot-- > 0;) {
    if (!is_used[slot]) free_.push_back(slot);  // the first is taken first
  }
  has_new_ = true;
}

std::optional<AheadRow> AheadFile::find(std::uint64_t record, std::string_view text) {
  const auto [begin, end] = entries_.equal_range(record);
  if (begin == end) return std::nullopt;
  const auto text_hash = hash_hex(text);
  std::optional<AheadRow> found;
  for (auto at = begin; at != end;) {
    const bool is_meant = !found && at->second.text_hash == text_hash;
    if (is_meant) found = read(at->second.slot);
    if (is_meant && found) {
      ++at;
      continue;
    }
    free_.push_back(at->second.slot);
    at = entries_.erase(at);
  }
  return found;
}

std::optional<AheadRow> AheadFile::read(std::uint64_t slot) {
  buffer_.resize(ahead_slot_size(dim_));
  const auto size =
      read_at(fd_.get(), std::as_writable_bytes(std::span(buffer_)), offset_of(slot), path_);
  if (!size || *size < buffer_.size()) return std::nullopt;  // it is computed again
  return decode_ahead_row(buffer_, run_);
}

// A file that is not whole, or not in its folder for good, is made again by the next `put`.
Status AheadFile::create(std::uint32_t dim) {
  fd_ = MUSTER_TRY(open_own_file(path_, O_RDWR | O_CREAT | O_TRUNC));
  auto made = write_all(fd_.get(), ahead_header(run_, dim), path_);
  if (made) made = sync_folder(path_.parent_path());
  if (made) {
    dim_ = dim;
  } else {
    fd_ = UniqueFd();
  }
  return made;
}

Status AheadFile::put(const AheadText& text, std::span<const float> values) {
  MUSTER_TRY(Status(state_));
  if (!fd_.is_open()) MUSTER_TRY(create(static_cast<std::uint32_t>(values.size())));
  MUSTER_CHECK(values.size() == dim_);
  const AheadRow row{.record = text.record,
                     .text_hash = hash_hex(text.text),
                     .token_count = text.token_count,
                     .is_truncated = text.is_truncated,
                     .values = {}};
  encode_ahead_row(row, values, run_, buffer_);
  const auto slot = free_.empty() ? slot_count_ : free_.back();
  MUSTER_TRY(write_at(fd_.get(), std::as_bytes(std::span(buffer_)), offset_of(slot), path_));
  if (free_.empty()) {
    ++slot_count_;
  } else {
    free_.pop_back();
  }
  entries_.emplace(text.record, Entry{row.text_hash, slot});
  has_new_ = true;
  return Done{};
}

Status AheadFile::sync() {
  MUSTER_TRY(Status(state_));
  if (!has_new_ || !fd_.is_open()) return Done{};
  if (::fdatasync(fd_.get()) != 0) {
    state_ = system_error(path_.string(), "sync", errno);
    return state_;
  }
  for (auto& entry : entries_) entry.second.is_durable = true;
  has_new_ = false;
  return Done{};
}

Status AheadFile::drop_before(std::uint64_t record_count) {
  const auto end = entries_.lower_bound(record_count);
  for (auto at = entries_.begin(); at != end; ++at) free_.push_back(at->second.slot);
  entries_.erase(entries_.begin(), end);
  if (!entries_.empty() || slot_count_ == 0) return Done{};
  if (::ftruncate(fd_.get(), static_cast<off_t>(kAheadHeaderSize)) != 0) {
    return system_error(path_.string(), "cut", errno);
  }
  slot_count_ = 0;
  free_.clear();
  return Done{};
}

std::uint64_t AheadFile::durable_count() const {
  std::uint64_t count = 0;
  for (auto at = entries_.begin(); at != entries_.end(); at = entries_.upper_bound(at->first)) {
    count += at->second.is_durable ? 1 : 0;
  }
  return count;
}

Result<std::uint64_t> count_ahead_rows(const std::filesystem::path& path, const std::string& run,
                                       std::uint64_t record_count) {
  const auto content = MUSTER_TRY(read_of_run(path, run));
  if (!content) return std::uint64_t{0};
  std::vector<std::uint64_t> records;
  for (const auto& entry : content->entries) {
    if (entry.record >= record_count) records.push_back(entry.record);
  }
  std::sort(records.begin(), records.end());
  const auto end = std::unique(records.begin(), records.end());
  return static_cast<std::uint64_t>(end - records.begin());
}

}  // namespace muster
