#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// How vectors are written: by the ending of OUT.
enum class VectorFormat : std::uint8_t {
  Npy,          // NumPy format 1.0: float32, C order, [rows, dim]
  Safetensors,  // one tensor "embeddings", F32 [rows, dim]
  Jsonl,        // an array of numbers a line, shortest form that reads back to the same float32;
                // by `append_object` the last member of an object
};

/// Errors: InvalidArgument for another ending, naming the three.
Result<VectorFormat> vector_format_of(const std::filesystem::path& out);

/// Bytes before the first row. `finish` rewrites them, so no checksum of a journal covers them.
std::uint64_t vector_header_size(VectorFormat format);

/// Appends a row as an array of the shortest decimals that read back to the same float32.
void append_json_row(std::span<const float> row, std::string& out);

/// Whether no value is an infinity or NaN: the only rows that are written.
bool is_all_finite(std::span<const float> values);

/// Appends rows to an unfinished file and gives it its final header at the end. The header has a
/// fixed size for any row count, so the file grows by appending alone and `finish` rewrites the
/// head in place.
///
/// Threads: not thread-safe; owned by one loop.
/// Source: NEP 1 (npy 1.0), safetensors 0.8, ECMAScript Number::toString via std::to_chars (jsonl).
class VectorWriter {
 public:
  struct Place {
    std::uint64_t row_count = 0;  // rows already in the file
    std::uint64_t size = 0;       // bytes already in the file, the header among them
    std::string rows_hash =
        {};  // Hash128 of the bytes that `append` brought since the `sync` before
             // (or `open`); the header is not among them. Not read by `open`.
  };

  /// A file that is whole.
  struct Whole {
    std::uint64_t row_count = 0;
    std::uint64_t size = 0;
    std::string hash;  // Hash128 of everything behind the header
  };

  /// Opens `part` for appending; `resume` at nullopt creates or truncates it, else the file is cut
  /// to `resume->size` bytes, which are read once for the hash of the whole.
  ///
  /// Errors: those of creating and writing; Corrupt when the file is shorter than `resume` says, or
  /// its rows cannot take that many bytes.
  static Result<std::unique_ptr<VectorWriter>> open(const std::filesystem::path& part,
                                                    VectorFormat format, std::uint32_t dim,
                                                    std::optional<Place> resume);

  virtual ~VectorWriter() = default;

  /// Shapes: rows [n, dim] float32, n = rows.size() / dim; buffered.
  /// Errors: ResourceExhausted (disk full) and the other errors of writing; InvalidArgument for NaN
  /// or an infinity. After any of them every call says the same.
  virtual Status append(std::span<const float> rows) = 0;

  /// The same for one row of Jsonl, as the object {MEMBERS"embedding":[…]}. members: `"id":"a7",`,
  /// each with its comma; may be empty.
  virtual Status append_object(std::string_view members, std::span<const float> row) = 0;

  /// Writes the buffer. The place is safe to journal once `make_durable`, called afterwards, has
  /// returned.
  virtual Result<Place> mark() = 0;

  /// Makes what was written so far durable (fdatasync).
  ///
  /// Threads: may run beside all but `finish`.
  virtual Status make_durable() const = 0;

  /// Both in turn.
  Result<Place> sync() {
    auto place = MUSTER_TRY(mark());
    MUSTER_TRY(make_durable());
    return place;
  }

  /// Writes the final header, and makes the file durable; the caller renames it.
  virtual Result<Whole> finish() = 0;
};

}  // namespace muster
