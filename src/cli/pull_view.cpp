// Progress counts bytes and not files, since one file of a model is most of it. A plan lists what
// is here already beside what is to be fetched, so that a dry run answers how much would come over
// the network. The JSON has the same keys with --dry-run and without; what only a fetch knows is
// null before it.

#include "cli/pull_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

// A file may be here as a blob that another revision has brought: then only its link is missing.
std::string state_of(const PlannedFile& planned) {
  if (planned.is_here) return "here";
  if (planned.bytes_here == planned.file.size) return "here, to be linked";
  if (planned.bytes_here > 0) return fmt::format("{} here", human_bytes(planned.bytes_here));
  return "to fetch";
}

std::string count_of_files(std::size_t count) {
  return count == 1 ? "1 file" : fmt::format("{} files", with_thousands(count));
}

}  // namespace

ProgressReading pull_reading(const PullProgress& progress) {
  ProgressReading reading;
  if (progress.bytes_all > 0) {
    reading.fraction =
        static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_all);
  }
  reading.counts = {{"MB", progress.bytes_done / kMegabyte}};
  const auto number = std::min(progress.files_done + 1, progress.files_all);
  reading.remarks = {fmt::format("file {} of {}", number, progress.files_all), progress.file};
  return reading;
}

std::string describe_pull_plan(const PullPlan& plan, const TerminalInfo& terminal) {
  Table table(
      {{"file"}, {"size", Align::Right}, {.title = "state", .leaves = 1, .goes_below = true}});
  for (const auto& planned : plan.files) {
    table.add_row({planned.file.path, human_bytes(planned.file.size), state_of(planned)});
  }
  const auto sum =
      wrapped(fmt::format("{} at {}: {}, {} in all, {} to fetch", plan.options.model, plan.commit,
                          count_of_files(plan.files.size()), human_bytes(plan.bytes_all()),
                          human_bytes(plan.bytes_all() - plan.bytes_here())),
              {.width = terminal.width, .indent = 2});
  return fmt::format("{}\n{}{}\n", table.render(terminal.width, terminal.has_color), sum,
                     plan.snapshot.string());
}

std::string describe_pull_end(const PullPlan& plan, std::uint64_t received) {
  const auto files = count_of_files(plan.files.size());
  const auto size = human_bytes(plan.bytes_all());
  if (plan.is_done) return fmt::format("already here: {}, {}", files, size);
  return fmt::format("{}, {}: {} came over the network", files, size, human_bytes(received));
}

std::string pull_json(const PullPlan& plan, const std::uint64_t* received) {
  auto files = nlohmann::ordered_json::array();
  for (const auto& planned : plan.files) {
    files.push_back({{"path", planned.file.path},
                     {"size", planned.file.size},
                     {"hash", planned.file.hash},
                     {"bytes_here_before", planned.bytes_here}});
  }
  nlohmann::ordered_json json{{"model", plan.options.model},  {"revision", plan.options.revision},
                              {"commit", plan.commit},        {"path", plan.snapshot.string()},
                              {"already_here", plan.is_done}, {"bytes", plan.bytes_all()},
                              {"bytes_received", nullptr},    {"files", std::move(files)}};
  if (received != nullptr) json["bytes_received"] = *received;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace muster
