#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// A whole regular file mapped read-only; the bytes stay valid while this lives. Where another
/// process may cut the file shorter, they are read by `read_mapped`.
///
/// Threads: immutable.
class MappedFile {
 public:
  /// Errors: those of open_regular_file; an empty file maps to an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A regular file and what the system said of it when it was opened.
struct RegularFile {
  UniqueFd fd;
  std::uint32_t mode = 0;  // 0640: who may use it
  std::uint64_t size = 0;  // in bytes
};

/// What lies at `path`, links followed: "a file", "a folder", "a pipe", "a socket", "a device";
/// "nothing" where nothing can be seen. For messages.
std::string_view kind_of_file(const std::filesystem::path& path);

/// Whether `path` leads to a regular file. Nothing is opened.
///
/// Errors: NotFound; InvalidArgument, with what lies there instead; those of the system.
Status check_regular_file(const std::filesystem::path& path);

/// Opens a regular file and nothing else; a pipe that nobody writes keeps nobody waiting.
///
/// flags: of open(2); O_CLOEXEC is added. mode: of a file that O_CREAT makes, less the umask.
/// Errors: InvalidArgument (a folder, a pipe, a socket, a device: named); those of the system.
Result<RegularFile> open_regular_file(const std::filesystem::path& path, int flags,
                                      std::uint32_t mode = 0);

/// Reads what is left of `fd`, at most `size_max` bytes; `path` is for the message only.
///
/// Errors: ResourceExhausted when it is more; those of the system.
Result<std::string> read_all(int fd, std::uint64_t size_max, const std::filesystem::path& path);

/// Reads a whole file of at most `size_max` bytes.
///
/// Errors: NotFound, InvalidArgument; ResourceExhausted when it is larger.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::uint64_t size_max = 1ULL << 30);

/// As read_file, of a regular file alone: for those of which a name leads to a pipe only by mistake
/// and where nobody may wait for its writer.
///
/// Errors: those of open_regular_file; ResourceExhausted when it is larger.
Result<std::string> read_regular_file(const std::filesystem::path& path,
                                      std::uint64_t size_max = 1ULL << 30);

/// Who may use a file that is written.
struct FileAccess {
  std::uint32_t mode = 0644;                // without a group, less the umask of the process
  std::optional<std::uint32_t> group = {};  // nullopt: that of the process
};

/// The file that `path` names, symbolic links followed; `path` itself where there is no file yet.
///
/// Errors: NotFound for a link to nothing, InvalidArgument for a circle of links.
Result<std::filesystem::path> followed_path(const std::filesystem::path& path);

/// Writes the file whole or not at all: a temporary name beside it, fsync, rename, fsync of the
/// folder. Of a symbolic link the file it leads to is replaced, never the link. A device or a pipe
/// is written into.
///
/// Errors: NotFound (no such folder, a link to nothing), ResourceExhausted (disk full),
/// InvalidArgument (a folder).
Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             const FileAccess& access = {});

/// The name that a write was to have which `write_file_atomically` has not ended, as it was killed:
/// "x.json" of "x.json.0123456789abcdef.tmp"; empty of any other file.
std::filesystem::path unfinished_name(const std::filesystem::path& file);

/// Removes what such writes of `path` have left beside it; of a link, beside the file it leads to.
/// What cannot be removed, as another user's in /tmp, stays: it is in nobody's way. Whoever calls
/// it keeps others from writing `path` meanwhile.
///
/// Errors: those of followed_path.
Status remove_unfinished(const std::filesystem::path& path);

/// Writes all of `content` to `fd`, retrying short writes and EINTR and waiting for room where `fd`
/// does not; `path` is for the message only.
Status write_all(int fd, std::string_view content, const std::filesystem::path& path);

/// Makes a finished rename or creation in `folder` durable (fsync of the folder).
Status sync_folder(const std::filesystem::path& folder);

}  // namespace muster
