// XIDs from the kernel's own log, which knows of those from before muster was started. /dev/kmsg
// gives one record per read and never blocks here; a record that was overwritten while reading
// is skipped. The log writes PCI addresses shorter than NVML does, so both are brought to one
// form to compare.

#include "doctor/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// The kernel's ring is at most 2^25 bytes (CONFIG_LOG_BUF_SHIFT, lib/Kconfig.debug).
constexpr std::size_t kLogSizeMax = std::size_t{1} << 25;

template <typename Number>
std::optional<Number> leading_number(std::string_view text) {
  Number value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

std::optional<KernelXid> parse_record(std::string_view record) {
  constexpr std::string_view kMark = "NVRM: Xid (PCI:";
  const auto semicolon = record.find(';');
  const auto mark = record.find(kMark);
  if (semicolon == std::string_view::npos || mark == std::string_view::npos || mark < semicolon) {
    return std::nullopt;
  }
  const auto fields = split(record.substr(0, semicolon), ',');
  const auto place = record.substr(mark + kMark.size());
  const auto close = place.find("): ");
  if (fields.size() < 3 || close == std::string_view::npos) return std::nullopt;
  const auto microseconds = leading_number<std::uint64_t>(fields[2]);
  const auto code = leading_number<std::uint32_t>(place.substr(close + 3));
  if (!microseconds || !code) return std::nullopt;
  return KernelXid{.pci_address = std::string(place.substr(0, close)),
                   .code = *code,
                   .seconds_since_boot = static_cast<double>(*microseconds) * 1e-6};
}

// "0000:1b:00" and "00000000:1B:00.0" -> "0:1b:00".
std::string plain_place(std::string_view address) {
  const auto begin = address.find_first_not_of('0');
  std::string place;
  if (begin == std::string_view::npos) return place;
  if (address[begin] == ':') place = "0";
  place += address.substr(begin, address.find('.', begin) - begin);
  for (char& c : place) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return place;
}

}  // namespace

std::vector<KernelXid> parse_kernel_log(std::string_view text) {
  std::vector<KernelXid> xids;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (const auto xid = parse_record(text.substr(0, end))) xids.push_back(*xid);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return xids;
}

Result<std::vector<KernelXid>> read_kernel_xids(const std::filesystem::path& root) {
  const auto path = root / "dev/kmsg";
  const UniqueFd log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (log.get() < 0 && errno == ENOENT) {
    return Error{ErrorKind::NotFound, fmt::format("there is no {}", path.string())};
  }
  std::string text;
  std::array<char, 8192> record{};  // a record is at most 8 KiB: kernel/printk, CONSOLE_EXT_LOG_MAX
  while (log.get() >= 0 && text.size() < kLogSizeMax) {
    const auto size = ::read(log.get(), record.data(), record.size());
    if (size < 0 && (errno == EINTR || errno == EPIPE))
      continue;  // EPIPE: a record was overwritten
    if (size == 0 || (size < 0 && errno == EAGAIN)) return parse_kernel_log(text);
    if (size < 0) break;
    text.append(record.data(), static_cast<std::size_t>(size));
  }
  if (text.size() >= kLogSizeMax) return parse_kernel_log(text);
  return Error{ErrorKind::Unavailable,
               fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno))};
}

bool is_same_pci_place(std::string_view of_log, std::string_view pci_address) {
  const auto place = plain_place(of_log);
  return !place.empty() && place == plain_place(pci_address);
}

}  // namespace muster
