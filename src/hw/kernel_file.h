#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "hw/device_sampler.h"

namespace muster {

/// A file under /proc or /sys that is read again and again: it stays open, and each read starts at
/// its beginning, where the kernel makes its content anew. Where a file goes with its device and
/// comes back, the next read opens it again.
///
/// Threads: not thread-safe; owned by one sampler.
class KernelFile {
 public:
  /// call: what the read is called in costs, "read energy_uj"; it lives as long as the program.
  /// size_max: a longer file fails with EFBIG, so that a wrong root does not read a disk.
  KernelFile(const char* call, std::filesystem::path path, std::size_t size_max = 4096)
      : call_(call), path_(std::move(path)), size_max_(size_max) {}

  /// Reads it whole, tells `watch`, and counts the call in `sample`. The errno of what failed; 0:
  /// `text` is what was read.
  std::int32_t read(CallWatch& watch, DeviceSample& sample);

  /// Until the next read.
  std::string_view text() const { return std::string_view(buffer_).substr(0, size_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::int32_t read_all();

  const char* call_;
  std::filesystem::path path_;
  std::size_t size_max_;
  UniqueFd file_;
  std::string buffer_;  // keeps its size, so that no byte is written twice
  std::size_t size_ = 0;
};

/// True for the errno of a file that is not there, or whose device does not offer it: no error of a
/// reading. Source: Linux, Documentation/filesystems/sysfs.rst; amdgpu_pm.c answers EOPNOTSUPP and
/// EINVAL where the ASIC has no such sensor, ENODEV once the device is unplugged.
bool is_not_offered(std::int32_t code);

/// The whole number at the beginning of a text; nullopt when there is none or it does not fit.
std::optional<std::int64_t> leading_number(std::string_view text);

/// A number in hexadecimal, with or without "0x".
std::optional<std::uint64_t> hex_number(std::string_view text);

/// The trimmed content of a small file that is read once, when a device is opened; nullopt when it
/// is not there or empty.
std::optional<std::string> small_text(const std::filesystem::path& path);

}  // namespace muster
