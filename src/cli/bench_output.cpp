// A result with its samples may take gigabytes, so it is known by how it begins: by the version and
// the tool, which are its first keys. White space does not count, because people lay out JSON.

#include "cli/bench_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/positioned_io.h"
#include "report/report_page.h"

namespace muster {
namespace {

/// Source: docs/formats/bench-result.md.
constexpr std::string_view kVersion = R"({"schema_version":)";
constexpr std::string_view kTool = R"(,"tool":{"name":"musterbench")";

bool is_bench_result(std::string head) {
  std::erase_if(head, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  if (!head.starts_with(kVersion)) return false;
  const auto end = head.find_first_not_of("0123456789", kVersion.size());
  return end != std::string::npos && std::string_view(head).substr(end).starts_with(kTool);
}

Error refused(const std::filesystem::path& out, std::string_view why) {
  return {ErrorKind::InvalidArgument, fmt::format("-o {}: {}", out.string(), why)};
}

// A file is made beside the result and takes its name when it is whole.
Status check_folder(const std::filesystem::path& out) {
  const auto file = MUSTER_TRY(followed_path(out));
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("-o {}: there is no folder {}", out.string(), folder.string())};
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return Done{};
  return system_error(fmt::format("-o {}", out.string()), "write", errno);
}

// kind: of the file that may be written over, for the message.
Status check_output(const std::filesystem::path& out, bool (*is_ours)(std::string head),
                    std::string_view kind) {
  using std::filesystem::file_type;
  if (out.empty()) return invalid_error("-o wants the name of a file");
  if (out == "-") {
    return refused(out, fmt::format("a {} goes into a file: name one{}", kind,
                                    kind == "result" ? "; --json has it on standard output" : ""));
  }
  std::error_code ignored;
  const auto type = std::filesystem::status(out, ignored).type();
  if (type == file_type::directory) return refused(out, "that is a folder: name a file in it");
  if (type == file_type::not_found) return check_folder(out);
  if (type != file_type::regular) return Done{};
  const auto file = MUSTER_TRY(open_regular_file(out, O_RDONLY));
  constexpr std::size_t kHeadSize = 4096;
  std::string head(kHeadSize, '\0');
  head.resize(MUSTER_TRY(read_at(file.fd.get(), std::as_writable_bytes(std::span(head)), 0, out)));
  if (head.empty() || is_ours(std::move(head))) return check_folder(out);
  return refused(out, fmt::format("that is no {} of muster bench, and it would be overwritten: "
                                  "remove it, or name another file",
                                  kind));
}

bool is_bench_report(std::string head) { return is_report_head(head); }

}  // namespace

Status check_bench_output(const std::filesystem::path& out) {
  return check_output(out, is_bench_result, "result");
}

// A name that is another's file by now keeps what it is: it is looked at again before it is
// written.
Result<std::optional<OutputLock>> hold_bench_output(const std::filesystem::path& out) {
  using std::filesystem::file_type;
  std::error_code ignored;
  const auto type = std::filesystem::status(out, ignored).type();
  if (type != file_type::not_found && type != file_type::regular) {
    return std::optional<OutputLock>();
  }
  auto file = MUSTER_TRY(followed_path(out));  // two names of one file are one file
  file += ".lock";
  auto lock = MUSTER_TRY(OutputLock::take(file, out));
  MUSTER_TRY(remove_unfinished(out));
  return std::optional<OutputLock>(std::move(lock));
}

Status check_report_output(const std::filesystem::path& out) {
  return check_output(out, is_bench_report, "report");
}

}  // namespace muster
