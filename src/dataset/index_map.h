#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/byte_source.h"
#include "dataset/field_table.h"
#include "dataset/vector_file.h"

namespace muster {

/// Where the line of each row lies in an index, and the fields that it keeps.
struct IndexMap {
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;  // without its end
  };
  std::vector<Place> lines;  // by row
  FieldTable fields;
};

/// Reads an index once.
///
/// name: for messages. Errors: Corrupt, with the line, for what is no index or lacks a row; those
/// of the source.
Result<IndexMap> map_index(std::unique_ptr<ByteSource> source, const std::string& name);

/// An index that stays open: texts are read when they are asked for, so that a large one takes 16
/// bytes of memory a row and what its kept fields take.
///
/// Threads: immutable.
class IndexFile {
 public:
  /// row_count: of the vectors it belongs to.
  ///
  /// Errors: NotFound; Corrupt, with the line, or for another number of rows.
  static Result<std::unique_ptr<IndexFile>> open(const std::filesystem::path& path,
                                                 std::uint64_t row_count);

  const FieldTable& fields() const { return map_.fields; }

  /// Bytes of the line of a row.
  std::uint64_t size_of(std::uint64_t row) const { return map_.lines[row].size; }

  /// Errors: Corrupt when the file is not any more what it was; those of reading.
  Result<IndexEntry> entry(std::uint64_t row) const;

 private:
  IndexFile(std::string name, UniqueFd fd, IndexMap map)
      : name_(std::move(name)), fd_(std::move(fd)), map_(std::move(map)) {}

  const std::string name_;
  const UniqueFd fd_;
  const IndexMap map_;
};

}  // namespace muster
