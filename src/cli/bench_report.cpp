// Files in, one page out. Results that are named are compared with one another; those of a folder
// are the points of a sweep, and a recording in a folder may be one of another table's points.
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/bench_measurement.h"
#include "cli/bench_output.h"
#include "report/point_names.h"
#include "report/report_page.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kResultBytesMost = 4ULL << 30;  // as muster bench diff reads
constexpr std::string_view kRecordingEnding = ".jsonl";

struct NamedFile {
  fs::path path;
  bool is_named = true;  // else it was found in a folder
};

bool is_recording(const fs::path& path) { return path.extension() == kRecordingEnding; }

Result<std::vector<NamedFile>> files_in(const fs::path& folder) {
  std::vector<NamedFile> files;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    const auto& path = entry->path();
    if (path.extension() != ".json" && !is_recording(path)) continue;
    files.push_back({.path = path, .is_named = false});
  }
  if (fault) return system_error(folder.string(), "read", fault.value());
  if (files.empty()) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{}: no result (.json) and no recording (.jsonl) is in this folder",
                             folder.string())};
  }
  std::ranges::sort(files, {}, &NamedFile::path);
  return files;
}

Result<std::vector<NamedFile>> files_of(const Arguments& arguments) {
  std::vector<NamedFile> files;
  for (std::size_t i = 1; i < arguments.positionals.size(); ++i) {
    const fs::path path(arguments.positionals[i]);
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back({.path = path});
      continue;
    }
    auto found = MUSTER_TRY(files_in(path));
    for (auto& file : found) files.push_back(std::move(file));
  }
  return files;
}

// What was named, a folder of points by its table: "x.points" is of "x".
std::string title_of(const Arguments& arguments) {
  constexpr std::size_t kNamesMost = 3;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < arguments.positionals.size(); ++i) {
    fs::path path(arguments.positionals[i]);
    if (!path.has_filename()) path = path.parent_path();  // "x.points/"
    names.push_back(path.extension() == ".points" ? path.stem().string()
                                                  : path.filename().string());
  }
  const auto more = names.size() - std::min(names.size(), kNamesMost);
  names.resize(names.size() - more);
  return fmt::format("muster bench: {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : std::string());
}

// The name of each file, with its folder where two have the same, and a number where that is the
// same, too. No folder above: a report is given to others.
std::vector<std::string> shown_names(const std::vector<NamedFile>& files) {
  std::map<std::string, int> counts;
  for (const auto& file : files) ++counts[file.path.filename().string()];
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const auto& file : files) {
    auto name = file.path.filename().string();
    if (counts[name] > 1) name = (file.path.parent_path().filename() / name).string();
    const int number = ++seen[name];
    names.push_back(number > 1 ? fmt::format("{} ({})", name, number) : name);
  }
  return names;
}

Status add_result(ReportInput& input, const NamedFile& file, const std::string& name) {
  const auto text = MUSTER_TRY(read_file(file.path, kResultBytesMost));
  auto result = read_report_result(text, file.path.string());
  if (!result) return result.error();
  result->name = name;
  result->is_compared = file.is_named;
  input.results.push_back(std::move(*result));
  return Done{};
}

Status add_recording(ReportInput& input, const NamedFile& file, const std::string& name) {
  const auto text = MUSTER_TRY(read_file(file.path));
  auto recording =
      MUSTER_TRY(read_power_recording(text, file.path.string(), file.path.stem().string()));
  recording.name = name;
  const bool is_wanted = std::ranges::any_of(input.results, [&](const ReportResult& result) {
    return is_recording_of(recording, result, input.results);
  });
  if (!is_wanted && file.is_named) {
    return invalid_error(fmt::format(
        "{}: the recording is of none of the results: no trial of theirs ran while it was made",
        file.path.string()));
  }
  if (is_wanted) input.recordings.push_back(std::move(recording));
  return Done{};
}

// Results first: a recording belongs to one of them.
Status read_files(const Arguments& arguments, ReportInput& input) {
  const auto files = MUSTER_TRY(files_of(arguments));
  const auto names = shown_names(files);
  for (const bool wants_recordings : {false, true}) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (is_recording(files[i].path) != wants_recordings) continue;
      MUSTER_TRY(wants_recordings ? add_recording(input, files[i], names[i])
                                  : add_result(input, files[i], names[i]));
    }
  }
  name_points(input.results);
  if (!input.results.empty()) return Done{};
  return invalid_error("muster bench report wants a result: a file of -o, or a folder of points");
}

}  // namespace

Result<int> write_bench_report(const CommandContext& context, const ComparisonRule& rule) {
  const auto& arguments = context.arguments;
  const auto out = arguments.value("--out").value_or("report.html");
  MUSTER_TRY(check_report_output(out));
  ReportInput input{.title = arguments.value("--title").value_or(title_of(arguments)),
                    .build = std::string(build_name()),
                    .results = {},
                    .recordings = {},
                    .rule = rule};
  MUSTER_TRY(read_files(arguments, input));
  const auto page = MUSTER_TRY(report_page(input));
  MUSTER_TRY(check_report_output(out));  // while results were read another file may have come
  MUSTER_TRY(write_file_atomically(out, page));
  say_bench_step(fmt::format("{} is written: {} result{}, {}", out, input.results.size(),
                             input.results.size() == 1 ? "" : "s", human_bytes(page.size())));
  return 0;
}

}  // namespace muster
