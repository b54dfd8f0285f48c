// A recording must survive a kill at any moment. A line is one write to a file opened for
// appending, and what a full disk has taken of a line is cut off again. On opening, a torn last
// line is cut too, but only when the file is a recording of ours: the cut would destroy another
// program's file.

#include "telemetry/line_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0644;

Result<UniqueFd> open_file(const fs::path& file) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode));
  if (!fd.is_open()) return system_error(file.string(), "write", errno);
  return fd;
}

// Where the last whole line ends; the rest was torn by the end of the process that wrote it.
Result<std::uint64_t> whole_lines_size(const UniqueFd& fd, std::uint64_t size,
                                       const fs::path& file) {
  std::array<char, 65536> block{};
  while (size > 0) {
    const auto count = std::min<std::uint64_t>(size, block.size());
    const auto got = ::pread(fd.get(), block.data(), count, static_cast<off_t>(size - count));
    if (got != static_cast<ssize_t>(count)) {
      return system_error(file.string(), "read", got < 0 ? errno : EIO);
    }
    const auto end = std::string_view(block.data(), count).rfind('\n');
    if (end != std::string_view::npos) return size - count + end + 1;
    size -= count;
  }
  return size;
}

// JSON that begins as a recording does and is none: on several lines, or whole without an end.
bool is_other_json(const UniqueFd& fd) {
  std::string begin(4096, '\0');
  const auto got = ::pread(fd.get(), begin.data(), begin.size(), 0);
  begin.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const auto end = begin.find('\n');
  const auto line = begin.substr(0, end);
  return end == std::string::npos ? nlohmann::json::accept(line)
                                  : line.find_first_not_of("{ \t\r") == std::string::npos;
}

// A last line without an end is cut: of a file that is no recording nothing must be.
Status check_recording(const UniqueFd& fd, const LineRecorder::Options& options) {
  const auto& header = options.header;
  const std::string wanted = header.empty() ? "{" : header;
  std::string first(wanted.size(), '\0');
  const auto got = ::pread(fd.get(), first.data(), first.size(), 0);
  if (got < 0) return system_error(options.file.string(), "read", errno);
  first.resize(static_cast<std::size_t>(got));
  const bool is_ours = !header.empty() || !is_other_json(fd);
  // A header that was torn is written anew.
  if ((first == wanted && is_ours) ||
      (got < static_cast<ssize_t>(wanted.size()) && wanted.starts_with(first))) {
    return Done{};
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} is there and holds no {} to go on with; another name is needed",
                           options.file.string(),
                           header.empty() ? "lines of JSON" : "CSV with these columns")};
}

fs::path older(const fs::path& file, std::uint32_t number) {
  return fmt::format("{}.{}", file.string(), number);
}

}  // namespace

Result<LineRecorder> LineRecorder::open(const Options& options) {
  auto fd = MUSTER_TRY(open_file(options.file));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(options.file.string(), "read", errno);
  auto size = static_cast<std::uint64_t>(status.st_size);
  // A pipe or a device has no lines to keep whole.
  if (S_ISREG(status.st_mode)) {
    MUSTER_TRY(check_recording(fd, options));
    const auto whole = MUSTER_TRY(whole_lines_size(fd, size, options.file));
    if (whole < size && ::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0) {
      return system_error(options.file.string(), "cut", errno);
    }
    size = whole;
  }
  LineRecorder recorder(options, std::move(fd), size);
  if (size == 0) MUSTER_TRY(recorder.append(options.header));
  return recorder;
}

Status LineRecorder::write(std::string_view line) {
  const bool has_lines = size_ > options_.header.size();
  if (options_.rotate_size > 0 && has_lines && size_ + line.size() > options_.rotate_size) {
    MUSTER_TRY(rotate());
  }
  return append(line);
}

Status LineRecorder::append(std::string_view text) {
  if (text.empty()) return Done{};
  ssize_t written = 0;
  do {
    written = ::write(fd_.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return system_error(options_.file.string(), "write", errno);
  if (static_cast<std::size_t>(written) < text.size()) {
    // The disk took a part and is full; what is there must end with a line. A pipe cannot be cut.
    (void)!::ftruncate(fd_.get(), static_cast<off_t>(size_));
    return system_error(options_.file.string(), "write", ENOSPC);
  }
  size_ += text.size();
  return Done{};
}

Status LineRecorder::rotate() {
  std::error_code failure;
  for (auto number = options_.rotate_keep; number > 1; --number) {
    // One that is not there yet leaves a gap that later lines fill.
    fs::rename(older(options_.file, number - 1), older(options_.file, number), failure);
  }
  if (options_.rotate_keep == 0) {
    fs::remove(options_.file, failure);
  } else {
    fs::rename(options_.file, older(options_.file, 1), failure);
  }
  if (failure) return system_error(options_.file.string(), "rotate", failure.value());
  fd_ = MUSTER_TRY(open_file(options_.file));
  size_ = 0;
  return append(options_.header);
}

}  // namespace muster
