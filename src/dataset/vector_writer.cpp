// Rows of vectors into a file that grows by appending alone. The header of a binary format is
// written first with no rows, at its final size, and again at the end with their number: until then
// a reader of the part file sees none. A place that `sync` returned is on the disk; a resumed run
// cuts off what stands behind it.

#include "dataset/vector_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "dataset/file_hash.h"
#include "dataset/own_file.h"
#include "dataset/vector_header.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little,
              "npy '<f4' and safetensors are little-endian");

// A write: the system call is noise beside the copy, and what was copied into the buffer is still
// in most processors' second-level cache when it is hashed and written.
constexpr std::size_t kBufferSize = 256 << 10;
constexpr std::size_t kHashPiece = 16 << 10;  // stays in the first-level cache for two hashes

std::string header_of(VectorFormat format, std::uint64_t row_count, std::uint32_t dim) {
  switch (format) {
    case VectorFormat::Npy:
      return npy_header(row_count, dim);
    case VectorFormat::Safetensors:
      return safetensors_header(row_count, dim);
    case VectorFormat::Jsonl:
      break;
  }
  return {};
}

class FileVectorWriter final : public VectorWriter {
 public:
  FileVectorWriter(UniqueFd fd, std::filesystem::path part, VectorFormat format, std::uint32_t dim,
                   Place place, Hash128 whole_hash)
      : fd_(std::move(fd)),
        part_(std::move(part)),
        format_(format),
        dim_(dim),
        place_(std::move(place)),
        whole_hash_(std::move(whole_hash)) {
    buffer_.reserve(kBufferSize);
  }

  Status append(std::span<const float> rows) override {
    MUSTER_TRY(Status(state_));
    MUSTER_CHECK(rows.size() % dim_ == 0);
    if (!is_all_finite(rows)) {
      return fail(not_finite(rows));
    }
    for (std::size_t at = 0; at < rows.size(); at += dim_) {
      const auto row = rows.subspan(at, dim_);
      if (format_ == VectorFormat::Jsonl) {
        append_json_row(row, buffer_);
        buffer_ += '\n';
      } else {
        buffer_.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
      }
      MUSTER_TRY(count_row());
    }
    return Done{};
  }

  Status append_object(std::string_view members, std::span<const float> row) override {
    MUSTER_TRY(Status(state_));
    MUSTER_CHECK(row.size() == dim_ && format_ == VectorFormat::Jsonl);
    if (!is_all_finite(row)) {
      return fail(not_finite(row));
    }
    buffer_ += '{';
    buffer_ += members;
    buffer_ += R"("embedding":)";
    append_json_row(row, buffer_);
    buffer_ += "}\n";
    return count_row();
  }

  Result<Place> mark() override {
    MUSTER_TRY(Status(state_));
    MUSTER_TRY(flush());
    place_.rows_hash = std::exchange(hash_, Hash128()).hex();
    return place_;
  }

  Status make_durable() const override {
    if (::fdatasync(fd_.get()) != 0) return system_error(part_.string(), "sync", errno);
    return Done{};
  }

  Result<Whole> finish() override {
    MUSTER_TRY(sync());
    const std::string header = header_of(format_, place_.row_count, dim_);
    if (!header.empty() && ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
      return fail(system_error(part_.string(), "write", errno)).error();
    }
    if (auto written = write_all(fd_.get(), header, part_); !written) {
      return fail(written.error()).error();
    }
    if (auto durable = make_durable(); !durable) return fail(durable.error()).error();
    return Whole{.row_count = place_.row_count, .size = place_.size, .hash = whole_hash_.hex()};
  }

  // Puts the placeholder of the header into a new file.
  Status start() {
    const std::string header = header_of(format_, 0, dim_);
    place_.size = header.size();
    return write_all(fd_.get(), header, part_);
  }

 private:
  // After a failed write nobody knows what the file holds: every later call says the same.
  Status fail(const Error& error) {
    state_ = error;
    return error;
  }

  Status count_row() {
    ++place_.row_count;
    return buffer_.size() >= kBufferSize ? flush() : Status(Done{});
  }

  Status flush() {
    if (auto written = write_all(fd_.get(), buffer_, part_); !written) {
      return fail(written.error());
    }
    for (std::size_t at = 0; at < buffer_.size(); at += kHashPiece) {
      const auto piece = std::string_view(buffer_).substr(at, kHashPiece);
      hash_.update(piece);
      whole_hash_.update(piece);
    }
    place_.size += buffer_.size();
    buffer_.clear();
    return Done{};
  }

  Error not_finite(std::span<const float> rows) const {
    std::uint64_t row = place_.row_count;
    for (std::size_t at = 0; is_all_finite(rows.subspan(at, dim_)); at += dim_) {
      ++row;
    }
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a value is not finite: row {}", part_.string(), row)};
  }

  UniqueFd fd_;
  std::filesystem::path part_;
  VectorFormat format_;
  std::uint32_t dim_;
  Place place_;  // rows with those in the buffer, bytes without
  Status state_ = Done{};
  Hash128 hash_;        // of the rows written since the last sync
  Hash128 whole_hash_;  // of all rows
  std::string buffer_;
};

Status check_place(const std::filesystem::path& part, int fd, VectorFormat format,
                   std::uint32_t dim, const VectorWriter::Place& place) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return system_error(part.string(), "read", errno);
  }
  if (static_cast<std::uint64_t>(info.st_size) < place.size) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: shorter than its journal says: {} bytes, not {}", part.string(),
                             info.st_size, place.size)};
  }
  const std::uint64_t rows_size = place.row_count * dim * sizeof(float);
  if (format != VectorFormat::Jsonl && place.size != vector_header_size(format) + rows_size) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: {} rows of {} values do not take {} bytes",
                                                 part.string(), place.row_count, dim, place.size)};
  }
  return Done{};
}

}  // namespace

// All exponent bits set: an infinity or NaN. Written so that the compiler makes vector code of it.
bool is_all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t found = 0;
  for (const float value : values) {
    found |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
  }
  return found == 0;
}

void append_json_row(std::span<const float> row, std::string& out) {
  char digits[32];  // the longest float32 is "-1.17549435e-38"
  out += '[';
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) out += ',';
    const auto end = std::to_chars(digits, digits + sizeof digits, row[i]).ptr;
    out.append(digits, end);
  }
  out += ']';
}

Result<VectorFormat> vector_format_of(const std::filesystem::path& out) {
  const auto ending = out.extension();
  if (ending == ".npy") return VectorFormat::Npy;
  if (ending == ".safetensors") return VectorFormat::Safetensors;
  if (ending == ".jsonl") return VectorFormat::Jsonl;
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("{}: vectors are written as .npy, .safetensors or .jsonl", out.string())};
}

std::uint64_t vector_header_size(VectorFormat format) {
  return format == VectorFormat::Jsonl ? 0 : kVectorHeaderSize;
}

Result<std::unique_ptr<VectorWriter>> VectorWriter::open(const std::filesystem::path& part,
                                                         VectorFormat format, std::uint32_t dim,
                                                         std::optional<Place> resume) {
  MUSTER_CHECK(dim > 0);
  auto fd = MUSTER_TRY(open_own_file(part, O_WRONLY | (resume ? 0 : O_CREAT | O_TRUNC)));
  if (!resume) {
    auto writer =
        std::make_unique<FileVectorWriter>(std::move(fd), part, format, dim, Place{}, Hash128());
    MUSTER_TRY(writer->start());
    return std::unique_ptr<VectorWriter>(std::move(writer));
  }
  MUSTER_TRY(check_place(part, fd.get(), format, dim, *resume));
  const auto size = static_cast<off_t>(resume->size);
  if (::ftruncate(fd.get(), size) != 0 || ::lseek(fd.get(), size, SEEK_SET) != size) {
    return system_error(part.string(), "cut", errno);
  }
  Hash128 hash;
  MUSTER_TRY(hash_bytes_of(part, vector_header_size(format), resume->size, hash));
  return std::unique_ptr<VectorWriter>(std::make_unique<FileVectorWriter>(
      std::move(fd), part, format, dim, *std::move(resume), std::move(hash)));
}

}  // namespace muster
