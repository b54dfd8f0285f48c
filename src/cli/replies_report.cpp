// What a run over prompts took. Speeds are over the whole time, start included, because that is
// what the person has waited for; those of a device are over the time in which it could work.

#include "cli/replies_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "cli/corpus_view.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

CorpusWords words() {
  return {.texts = "replies",
          .result = "reply",
          .results = "replies",
          .bad_entry = "its line says why",
          .bad_entries = "their lines say why",
          .has_busy_times = false};
}

std::string counted(std::uint64_t count, const char* one, const char* more) {
  return fmt::format("{} {}", with_thousands(count), count == 1 ? one : more);
}

std::string cached_text(const RepliesReport& report) {
  const auto count = report.cached_token_count;
  return count == 0 ? "" : fmt::format(" ({} cached)", with_thousands(count));
}

// "1,000 replies in 36.89 s: 27 replies/s, 3,456 tokens/s, own", and where they are.
std::string summary(const RepliesReport& report, const TerminalInfo& terminal) {
  const auto& progress = report.progress;
  const auto count = counted(progress.text_count, "reply", "replies");
  const auto first = wrapped(
      fmt::format("{} in {:.2f} s: {} replies/s, {} tokens/s, precision {}", count,
                  report.total_seconds, rate_text(progress.text_count, report.total_seconds),
                  rate_text(progress.reply_token_count, report.total_seconds),
                  decoder_precision_name(report.precision)),
      {.width = terminal.width, .indent = 2});
  const auto second =
      wrapped(fmt::format("{} [{}]; {} of prompts{}, {} of replies", report.out.string(),
                          counted(progress.resumed_count + progress.text_count, "reply", "replies"),
                          counted(progress.token_count, "token", "tokens"), cached_text(report),
                          with_thousands(progress.reply_token_count)),
              {.width = terminal.width, .indent = 2});
  // A narrow terminal may have broken the line within it; then nothing is coloured.
  const auto whole = first.starts_with(count) ? count.size() : 0;
  return styled_start(first, whole, kGood, terminal.has_color) + second;
}

}  // namespace

std::string describe_replies(const RepliesReport& report, const TerminalInfo& terminal) {
  const auto& progress = report.progress;
  const Wrap wrap{.width = terminal.width, .indent = 2};
  if (report.was_complete) {
    return wrapped(fmt::format("{} is complete already [{}]: nothing to do", report.out.string(),
                               counted(progress.resumed_count, "reply", "replies")),
                   wrap);
  }
  auto out = summary(report, terminal);
  for (const auto& sentence : remarks_of(report, words())) out += wrapped(sentence, wrap);
  return out + "\n" + describe_devices(progress, words(), terminal);
}

std::string replies_report_json(const RepliesReport& report) {
  const auto& progress = report.progress;
  Json devices = Json::array();
  for (const auto& device : progress.devices) {
    devices.push_back({{"name", device.name},
                       {"reply_count", device.text_count},
                       {"completion_tokens", device.token_count},
                       {"ready_seconds", device.ready_seconds},
                       {"restart_count", device.restart_count},
                       {"weights_bytes", device.weights_bytes},
                       {"state", device.state},
                       {"reason", device.reason}});
  }
  Json json{{"out", report.out.string()},
            {"was_complete", report.was_complete},
            {"reply_count", progress.text_count},
            {"prompt_tokens", progress.token_count},
            {"cached_prompt_tokens", report.cached_token_count},
            {"completion_tokens", progress.reply_token_count},
            {"resumed_count", progress.resumed_count},
            {"bad_count", progress.bad_count},
            {"blank_count", progress.blank_count},
            {"duplicate_id_count", progress.duplicate_id_count},
            {"first_duplicate_id", nullptr},
            {"are_all_ids_compared", report.are_all_ids_compared},
            {"read_count", progress.read_count},
            {"precision", decoder_precision_name(report.precision)},
            {"kv_cache_dtype", kv_cache_dtype_name(report.kv_cache_dtype)},
            {"decoder_class", report.equality_class},
            {"total_seconds", report.total_seconds},
            {"start_seconds", report.time.start},
            {"first_reply_seconds", report.first_result_seconds},
            {"parent_cpu_seconds", report.parent_cpu_seconds},
            {"devices", std::move(devices)}};
  if (!report.precision_reason.empty()) json["precision_reason"] = report.precision_reason;
  if (!report.first_duplicate.empty()) json["first_duplicate_id"] = report.first_duplicate;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
