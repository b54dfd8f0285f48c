// A run has the same things to tell whatever it computes: who did what, how fast, and what became
// of records that were not computed.

#include "cli/corpus_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "jobs/duplicate_ids.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

std::string device_table(const CorpusProgress& progress, const CorpusWords& words,
                         const TerminalInfo& terminal) {
  std::vector<Column> columns{{"device"},
                              {words.texts, Align::Right},
                              {.title = "tokens", .align = Align::Right, .leaves = 2},
                              {"tokens/s", Align::Right}};
  if (words.has_busy_times) {
    columns.push_back({.title = "busy", .align = Align::Right, .leaves = 3});
  }
  columns.push_back({.title = "restarts", .align = Align::Right, .leaves = 1});
  Table table(std::move(columns));
  for (const auto& device : progress.devices) {
    std::vector<TableCell> row{device.name, with_thousands(device.text_count),
                               with_thousands(device.token_count),
                               rate_text(device.token_count, device.ready_seconds)};
    if (words.has_busy_times) {
      row.emplace_back(
          device.busy_seconds ? percent_text(*device.busy_seconds, device.ready_seconds) : "-");
    }
    row.emplace_back(with_thousands(device.restart_count),
                     device.restart_count > 0 ? kWarning : Style{});
    table.add_row(std::move(row));
  }
  return table.render(terminal.width, terminal.has_color);
}

std::string device_warnings(const CorpusProgress& progress, const TerminalInfo& terminal) {
  constexpr std::string_view kWord = "warning:";
  std::string out;
  for (const auto& device : progress.devices) {
    if (device.state != "given up") continue;
    const auto lines =
        wrapped(fmt::format("{} {} was given up: {}", kWord, device.name, device.reason),
                {.width = terminal.width, .indent = 2});
    out += styled_start(lines, kWord.size(), kWarning, terminal.has_color);
  }
  return out;
}

// Ids that should be different and are not.
std::vector<std::string> duplicate_remarks(const CorpusReport& report) {
  const auto count = report.progress.duplicate_id_count;
  std::vector<std::string> sentences;
  if (count > 0) {
    sentences.push_back(
        fmt::format("{} {} the id of an earlier one, the first at {}", with_thousands(count),
                    count == 1 ? "record has" : "records have", report.first_duplicate));
  }
  if (!report.are_all_ids_compared) {
    sentences.push_back(fmt::format("ids were compared with the first {} alone",
                                    with_thousands(DuplicateIds::kIdsMost)));
  }
  return sentences;
}

}  // namespace

std::string percent_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

// What is behind the point is noise at high rates. Of low ones it is the rate: a decoder may write
// a reply in two seconds, and 0 replies/s would be read as none.
std::string rate_text(std::uint64_t count, double time_seconds) {
  if (time_seconds <= 0) return "-";
  const double rate = static_cast<double>(count) / time_seconds;
  if (rate < 10) return fmt::format("{:.2g}", rate);
  return with_thousands(static_cast<std::uint64_t>(rate));
}

std::string describe_devices(const CorpusProgress& progress, const CorpusWords& words,
                             const TerminalInfo& terminal) {
  return device_table(progress, words, terminal) + device_warnings(progress, terminal);
}

std::vector<std::string> remarks_of(const CorpusReport& report, const CorpusWords& words) {
  const auto& progress = report.progress;
  std::vector<std::string> sentences;
  const auto add = [&](std::uint64_t count, const std::string& of_one, const std::string& of_more) {
    if (count == 0) return;
    sentences.push_back(fmt::format("{} {}", with_thousands(count), count == 1 ? of_one : of_more));
  };
  add(progress.resumed_count, fmt::format("{} was there already (--resume)", words.result),
      fmt::format("{} were there already (--resume)", words.results));
  add(progress.blank_count, "blank line was passed over", "blank lines were passed over");
  add(progress.truncated_count, "text was cut at the token limit",
      "texts were cut at the token limit");
  add(progress.bad_count, fmt::format("bad record was skipped; {}", words.bad_entry),
      fmt::format("bad records were skipped; {}", words.bad_entries));
  for (auto& sentence : duplicate_remarks(report)) sentences.push_back(std::move(sentence));
  return sentences;
}

ProgressReading corpus_reading(const CorpusProgress& progress, const std::string& texts) {
  // Results are written in input order and come in any other, so what is written comes in jumps.
  // What the devices have finished is what people wait for, and tokens are what it costs.
  ProgressReading reading;
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  for (const auto& device : progress.devices) {
    text_count += device.text_count;
    token_count += device.token_count;
    reading.lanes.push_back(
        {device.name, device.text_count, device.state == "ready" ? "" : device.state});
  }
  reading.phase = progress.phase;
  reading.counts = {{texts, text_count}, {"tokens", token_count}};
  const bool is_known = progress.input_size_total && *progress.input_size_total > 0 &&
                        progress.input_size_read > 0 && progress.read_count > 0;
  if (!is_known) return reading;
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    // A retried text may be counted twice.
    return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  };
  const auto total = *progress.input_size_total;
  if (progress.read_token_count > 0) {
    const auto resumed = std::min(progress.input_size_resumed, progress.input_size_read);
    const auto read = static_cast<double>(progress.input_size_read - resumed);
    const auto tokens_done = token_count + progress.resumed_token_count;
    const auto done = read * share(tokens_done, progress.read_token_count);
    reading.fraction =
        std::min(1.0, (static_cast<double>(resumed) + done) / static_cast<double>(total));
  } else {
    const auto done = progress.resumed_count + progress.bad_count + text_count;
    reading.fraction = share(progress.input_size_read, total) * share(done, progress.read_count);
  }
  return reading;
}

}  // namespace muster
