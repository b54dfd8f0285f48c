#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/ahead_layout.h"

namespace muster {

/// Whose row it is, and what the index will say of the text.
struct AheadText {
  std::uint64_t record = 0;  // of the input, from 0
  std::string_view text;
  std::uint32_t token_count = 0;
  bool is_truncated = false;
};

/// The rows of a run that were computed before their turn, in a file beside its output until they
/// are written where they belong. The place of a row that is written is used again, so the file
/// never holds more than were ahead at once; when none is ahead, it is cut to its head.
///
/// A row belongs to a text and not to a place in the input alone: where the input has changed
/// meanwhile, it is not used.
///
/// Threads: not thread-safe; owned by the loop of the run.
class AheadFile {
 public:
  /// Makes no file before the first `put`, which replaces what lies there. run: identity_hash.
  AheadFile(std::filesystem::path path, std::string run);

  /// Goes on with the rows that an interrupted run has left, from record `record_count` on. Those
  /// of another run, and a file that is missing or never became whole, count for nothing.
  ///
  /// Errors: those of read_ahead and of opening.
  static Result<std::unique_ptr<AheadFile>> reopen(const std::filesystem::path& path,
                                                   std::string run, std::uint64_t record_count);

  /// Values of a row; 0 before there is a file.
  std::uint32_t dim() const { return dim_; }

  /// Whether a row of this record lies there.
  bool has(std::uint64_t record) const { return entries_.count(record) > 0; }

  /// The row of a record with this text, which stays where it is; nullopt where there is none. Rows
  /// of other texts of this record are dropped.
  std::optional<AheadRow> find(std::uint64_t record, std::string_view text);

  /// Puts a row into a free place. Shapes: values [dim] float32.
  ///
  /// Errors: those of creating and writing (a full disk: ResourceExhausted). The other rows are
  /// sound after it, and the next `put` tries the same place.
  Status put(const AheadText& text, std::span<const float> values);

  /// Makes the rows so far durable (fdatasync), where there are new ones. After an error every call
  /// says the same.
  Status sync();

  /// Rows of records before `record_count` are written where they belong, for good.
  Status drop_before(std::uint64_t record_count);

  /// Records of which a resumed run would find a row: those that `sync` has made durable, and those
  /// found there.
  std::uint64_t durable_count() const;

 private:
  struct Entry {
    std::string text_hash;
    std::uint64_t slot = 0;
    bool is_durable = false;
  };

  Status create(std::uint32_t dim);
  std::uint64_t offset_of(std::uint64_t slot) const {
    return kAheadHeaderSize + slot * ahead_slot_size(dim_);
  }
  std::optional<AheadRow> read(std::uint64_t slot);
  void take_over(const AheadContent& content, std::uint64_t record_count);

  const std::filesystem::path path_;
  const std::string run_;
  UniqueFd fd_;
  std::uint32_t dim_ = 0;
  std::multimap<std::uint64_t, Entry> entries_;  // by record; two where its text has changed
  std::vector<std::uint64_t> free_;              // slots before `slot_count_` that hold no row
  std::uint64_t slot_count_ = 0;
  bool has_new_ = false;   // rows since the last sync
  Status state_ = Done{};  // of the first sync that failed
  std::string buffer_;     // a slot
};

/// How many records from `record_count` on have a row in the file at `path`, as a resumed run would
/// find them; none where there is no file.
///
/// Errors: those of AheadFile::reopen.
Result<std::uint64_t> count_ahead_rows(const std::filesystem::path& path, const std::string& run,
                                       std::uint64_t record_count);

}  // namespace muster
