#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/index_map.h"
#include "dataset/output_record.h"
#include "dataset/vector_file.h"
#include "jobs/field_filter.h"

namespace muster {

/// What `muster embed` wrote, opened to be searched: the vectors (mapped; .jsonl is read into
/// memory), the index beside them, and the record that binds both.
///
/// Threads: immutable.
class SearchCorpus {
 public:
  /// Reads all three files once. may_lack_record: vectors that another program wrote are taken,
  /// whose index is then unchecked.
  ///
  /// Errors: NotFound for a missing file, with what to do; Corrupt when one of the three is not
  /// what the record speaks of; Unavailable while a run is writing them, or has replaced them
  /// meanwhile; InvalidArgument for a name that vectors do not have.
  static Result<std::unique_ptr<SearchCorpus>> open(const std::filesystem::path& out,
                                                    bool may_lack_record);

  const VectorFile& vectors() const { return *vectors_; }
  const IndexFile& index() const { return *index_; }
  const std::optional<OutputRecord>& record() const { return record_; }

  /// Names that a filter may use: those that were kept, met or not.
  const std::vector<std::string>& field_names() const { return field_names_; }

  /// A condition on the fields of these rows.
  ///
  /// Errors: those of FieldFilter::parse and check.
  Result<std::shared_ptr<const FieldFilter>> parse_filter(std::string_view condition) const;

  /// A filter that is asked about these rows.
  ///
  /// Errors: those of parse_filter. Cost: that of RowFilter.
  Result<std::shared_ptr<const RowFilter>> filter(std::string_view condition) const;

  /// The file of vectors is still as long and as old as when it was opened: what has been written
  /// into it is not searched. One that another has replaced by its name is not touched.
  ///
  /// Errors: Corrupt.
  Status check_unchanged() const;

 private:
  SearchCorpus() = default;

  std::filesystem::path out_;
  UniqueFd fd_;  // of the vectors
  std::uint64_t size_ = 0;
  std::int64_t changed_ns_ = 0;
  std::unique_ptr<VectorFile> vectors_;
  std::unique_ptr<IndexFile> index_;
  std::optional<OutputRecord> record_;
  std::vector<std::string> field_names_;
};

}  // namespace muster
