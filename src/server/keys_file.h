#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "server/api_keys.h"

namespace muster {

/// 256 random bits: "muster-" and 64 hexadecimal digits.
std::string make_api_key();

/// An entry as a keys file has it, indented below "keys:".
std::string keys_file_entry(const ApiKey& key);

/// A keys file's text with one entry more, at its end. What is there stays as it is when the entry
/// can be appended; else all is written anew, without comments.
///
/// file_name: for messages. Errors: InvalidArgument (a key of that name is there); those of
/// parse_api_keys. Threads: pure.
Result<std::string> with_api_key(const std::string& file_name, std::string_view text,
                                 const ApiKey& key);

/// All but one entry, written anew, without comments.
///
/// Errors: NotFound, with the nearest name; those of parse_api_keys. Threads: pure.
Result<std::string> without_api_key(const std::string& file_name, std::string_view text,
                                    std::string_view name);

/// Keeps a keys file to one writer: from before it is read until its new text is in place,
/// everybody else who takes the lock waits. It is on FILE.lock, which stays: the file itself is
/// replaced.
class KeysFileLock {
 public:
  /// Waits until the lock is free; whoever holds it does so for milliseconds.
  ///
  /// Errors: those of the system.
  static Result<KeysFileLock> take(const std::filesystem::path& path);

 private:
  explicit KeysFileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// Writes a keys file whole or not at all. An existing one keeps its mode and its group, a new one
/// is its owner's alone.
///
/// Errors: those of the system.
Status write_keys_file(const std::filesystem::path& path, std::string_view text);

/// "2027-01-01" by UTC.
std::string day_text(double unix_seconds);

}  // namespace muster
