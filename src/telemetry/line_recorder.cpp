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

// The first bytes of a file; fewer where it is shorter.
Result<std::string> beginning_of(const UniqueFd& fd, std::size_t size, const fs::path& file) {
  std::string text(size, '\0');
  const auto got = ::pread(fd.get(), text.data(), text.size(), 0);
  if (got < 0) return system_error(file.string(), "read", errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

// A header that was torn is written anew.
bool begins_with_header(std::string_view beginning, std::string_view header) {
  return beginning.size() < header.size() ? header.starts_with(beginning)
                                          : beginning.starts_with(header);
}

// JSON that begins as lines of it do and is none: on several lines, or whole without an end.
bool begins_with_json_line(std::string_view beginning) {
  const auto end = beginning.find('\n');
  const auto line = beginning.substr(0, end);
  if (line.empty()) return beginning.empty();
  if (!line.starts_with('{')) return false;
  return end == std::string_view::npos ? !nlohmann::json::accept(line)
                                       : line.find_first_not_of("{ \t\r") != std::string_view::npos;
}

// A line of hundreds of devices is longer than what is looked at, and one may be torn: of both only
// the first key can be told.
bool begins_with_keys(std::string_view beginning, const std::vector<std::string>& keys) {
  const auto end = beginning.find('\n');
  const auto json = nlohmann::json::parse(beginning.substr(0, end), nullptr, false);
  if (json.is_object()) {
    return std::ranges::all_of(keys, [&](const auto& key) { return json.contains(key); });
  }
  const auto begin = fmt::format("{{\"{}\":", keys.front());
  return end == std::string_view::npos && begins_with_header(beginning, begin);
}

Error no_recording(const LineRecorder::Options& options, const fs::path& file) {
  const auto* what = !options.header.empty() ? "CSV with these columns"
                     : options.keys.empty()  ? "lines of JSON"
                                             : "recording";
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} is there and holds no {} to go on with; another name is needed",
                           file.string(), what)};
}

// The first line with its end, or as much as is looked at.
Result<std::string> first_line_of(const UniqueFd& fd, const fs::path& file) {
  constexpr std::size_t kUsual = 64 << 10;
  constexpr std::size_t kMost = 16 << 20;  // 4,096 devices, as many as a reader takes, of 4 KiB
  auto line = MUSTER_TRY(beginning_of(fd, kUsual, file));
  const bool is_long = line.size() == kUsual && line.find('\n') == std::string::npos;
  return is_long ? beginning_of(fd, kMost, file) : Result<std::string>(std::move(line));
}

// A last line without an end is cut: of a file that is no recording nothing must be.
Status check_recording(const UniqueFd& fd, const LineRecorder::Options& options,
                       const fs::path& file) {
  const auto& header = options.header;
  const auto beginning = MUSTER_TRY(first_line_of(fd, file));
  const bool is_ours = !header.empty()         ? begins_with_header(beginning, header)
                       : !options.keys.empty() ? begins_with_keys(beginning, options.keys)
                                               : begins_with_json_line(beginning);
  return is_ours ? Status(Done{}) : no_recording(options, file);
}

fs::path older(const fs::path& file, std::uint32_t number) {
  return fmt::format("{}.{}", file.string(), number);
}

// A pipe or a device is never given another name.
bool may_have_older(const fs::path& file) {
  std::error_code ignored;
  const auto type = fs::status(file, ignored).type();
  return type == fs::file_type::not_found || type == fs::file_type::regular;
}

// A new file gives the older ones other names, and the oldest goes.
Status check_older(const LineRecorder::Options& options) {
  for (std::uint32_t number = 1; number <= options.rotate_keep; ++number) {
    const auto file = older(options.file, number);
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) continue;
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open()) return system_error(file.string(), "open", errno);
    MUSTER_TRY(check_recording(fd, options, file));
  }
  return Done{};
}

}  // namespace

Result<LineRecorder> LineRecorder::open(const Options& options) {
  // Before the file is made: nothing is left of a recording that is refused.
  if (options.rotate_size > 0 && may_have_older(options.file)) MUSTER_TRY(check_older(options));
  auto fd = MUSTER_TRY(open_file(options.file));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(options.file.string(), "read", errno);
  auto size = static_cast<std::uint64_t>(status.st_size);
  // A pipe or a device has no lines to keep whole.
  if (S_ISREG(status.st_mode)) {
    MUSTER_TRY(check_recording(fd, options, options.file));
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
