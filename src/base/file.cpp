// Reading and replacing files. A replacement is written beside its target under a random name,
// synced, and renamed over it, so a reader sees the old file or the new one, and a full disk leaves
// the old one as it was. Links are followed first: what a user named stays a link.

#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/random_bits.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr std::size_t kRandomDigits = 16;  // hexadecimal: of 64 bits

// For the name of a temporary file. A process id would not do: threads share theirs, and each of
// two containers that share a folder may be process 1.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

// Pipes and devices too: /dev/stdin is a file like others to whoever names it.
Result<UniqueFd> open_for_reading(const std::filesystem::path& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return system_error(path.string(), "open", errno);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return system_error(path.string(), "read", errno);
  }
  if (S_ISDIR(info.st_mode)) {
    return system_error(path.string(), "read", EISDIR);
  }
  return file;
}

std::string_view kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status check_mode(mode_t mode, const std::filesystem::path& path) {
  if (S_ISREG(mode)) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: {}, not a file", path.string(), kind_of_mode(mode))};
}

Status give_to_group(int fd, const FileAccess& access, const std::filesystem::path& path) {
  if (::fchown(fd, static_cast<uid_t>(-1), *access.group) != 0 || ::fchmod(fd, access.mode) != 0) {
    return system_error(path.string(), "keep the group of", errno);
  }
  return Done{};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const auto file = MUSTER_TRY(open_regular_file(path, O_RDONLY));
  if (file.size == 0) {
    return MappedFile(nullptr, 0);
  }
  void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (data == MAP_FAILED) {
    return system_error(path.string(), "map", errno);
  }
  return MappedFile(static_cast<const std::byte*>(data), file.size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

std::string_view kind_of_file(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? kind_of_mode(info.st_mode) : "nothing";
}

Status check_regular_file(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return check_mode(info.st_mode, path);
  if (errno != ENOENT && errno != ENOTDIR) return system_error(path.string(), "open", errno);
  return Error{ErrorKind::NotFound, fmt::format("{}: no such file", path.string())};
}

Result<RegularFile> open_regular_file(const std::filesystem::path& path, int flags,
                                      std::uint32_t mode) {
  RegularFile file;
  file.fd.reset(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, mode));
  if (!file.fd.is_open()) {
    const int error_number = errno;
    if (error_number == ENXIO) MUSTER_TRY(check_regular_file(path));  // a socket cannot be opened
    return system_error(path.string(), "open", error_number);
  }
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0) {
    return system_error(path.string(), "read", errno);
  }
  MUSTER_TRY(check_mode(info.st_mode, path));
  file.mode = info.st_mode & 07777;
  file.size = static_cast<std::uint64_t>(info.st_size);
  return file;
}

Result<std::string> read_all(int fd, std::uint64_t size_max, const std::filesystem::path& path) {
  std::string content;
  struct stat info {};
  // A hint and no more: /proc and /sys report size 0, so the end of the file decides.
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    content.reserve(std::min(static_cast<std::uint64_t>(info.st_size), size_max));
  }
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd, chunk, sizeof chunk);
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path.string(), "read", errno);
    }
    if (count == 0) {
      return content;
    }
    content.append(chunk, static_cast<std::size_t>(count));
    if (content.size() > size_max) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("{}: larger than the {} bytes allowed", path.string(), size_max)};
    }
  }
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t size_max) {
  const auto file = MUSTER_TRY(open_for_reading(path));
  return read_all(file.get(), size_max, path);
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t size_max) {
  const auto file = MUSTER_TRY(open_regular_file(path, O_RDONLY));
  return read_all(file.fd.get(), size_max, path);
}

Status write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      // A terminal or a socket is as others who share it have set it, and that may be not to wait.
      pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
      if (errno == EAGAIN && (::poll(&waiting, 1, -1) >= 0 || errno == EINTR)) continue;
      return system_error(path.string(), "write", errno);
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return Done{};
}

Status sync_folder(const std::filesystem::path& folder) {
  const auto name = folder.empty() ? std::filesystem::path(".") : folder;
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) {
    return system_error(name.string(), "open", errno);
  }
  if (::fsync(fd.get()) != 0) {
    return system_error(name.string(), "sync", errno);
  }
  return Done{};
}

Result<std::filesystem::path> followed_path(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, code))) return path;
  auto target = std::filesystem::canonical(path, code);
  if (code) return system_error(path.string(), "follow the link", code.value());
  return target;
}

namespace {

Status write_into(const std::filesystem::path& path, std::string_view content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.is_open()) return system_error(path.string(), "open", errno);
  return write_all(fd.get(), content, path);
}

Status replace_file(const std::filesystem::path& path, std::string_view content,
                    const FileAccess& access) {
  auto temporary = path;
  temporary += fmt::format(".{:0{}x}.tmp", random_number(), kRandomDigits);  // unfinished_name
  // Nobody of another group gets to read it before it is the right group's.
  const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           access.group ? 0600 : access.mode));
  if (!fd.is_open()) {
    return system_error(path.string(), "create", errno);
  }
  auto written = access.group ? give_to_group(fd.get(), access, path) : Done{};
  if (written) {
    written = write_all(fd.get(), content, path);
  }
  if (written && ::fsync(fd.get()) != 0) {
    written = system_error(path.string(), "sync", errno);
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = system_error(path.string(), "rename", errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_folder(path.parent_path());
}

}  // namespace

std::filesystem::path unfinished_name(const std::filesystem::path& file) {
  const auto random = file.stem().extension().string();
  const bool is_ours = file.extension() == ".tmp" && random.size() == 1 + kRandomDigits &&
                       random.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
  return is_ours ? file.stem().stem() : std::filesystem::path();
}

Status remove_unfinished(const std::filesystem::path& path) {
  const auto target = MUSTER_TRY(followed_path(path));
  const auto folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  std::vector<std::filesystem::path> left;  // a folder is not changed while it is read
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder, ignored); entry != end;
       entry.increment(ignored)) {
    if (unfinished_name(entry->path()) == target.filename()) left.push_back(entry->path());
  }
  for (const auto& file : left) {
    const auto status = std::filesystem::symlink_status(file, ignored);
    if (std::filesystem::is_regular_file(status)) std::filesystem::remove(file, ignored);
  }
  return Done{};
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view content,
                             const FileAccess& access) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return write_into(path, content);
  return replace_file(MUSTER_TRY(followed_path(path)), content, access);
}

}  // namespace muster
