// Digits end where a figure's own uncertainty hides them; units are those that people read aloud.
#include "bench/result/figure_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace muster {

std::string figure_text(double value) {
  const double size = std::abs(value);
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string milliseconds_text(double seconds) {
  constexpr double kMillisecond = 1e-3;
  return figure_text(seconds / kMillisecond);
}

std::string figure_rate_text(double rate) {
  return rate >= 1000 ? with_thousands(static_cast<std::uint64_t>(std::llround(rate)))
                      : figure_text(rate);
}

std::string compared_text(std::string_view figure, double value) {
  constexpr double kPerCent = 100;
  if (figure == "error_rate") return fmt::format("{:.3g} %", kPerCent * value);
  return figure.find("_p") != std::string_view::npos ? time_text(value)
                                                     : fmt::format("{:.4g}/s", value);
}

std::string ratio_text(double ratio) {
  if (ratio >= 1000) return ">1000";
  if (ratio < 0.001) return "<0.001";
  return fmt::format("{:.3f}", ratio);
}

std::string_view token_source_words(std::string_view source) {
  if (source == "usage") return "the server";
  return source == "tokenizer" ? "the tokenizer" : "pieces of the stream";
}

std::string stage_doubts_text(const StageDoubts& doubts, std::uint64_t answered) {
  std::string text;
  if (doubts.too_long > 0) {
    text = fmt::format(
        "in {} of {} answers the server's stages are longer than it had the request: they overlap, "
        "or its clock is wrong",
        with_thousands(doubts.too_long), with_thousands(answered));
  }
  if (doubts.left_out > 0) {
    text += fmt::format("{}{} of the times that the server reports are none, or of too many names",
                        text.empty() ? "" : "; ", with_thousands(doubts.left_out));
  }
  return text;
}

std::string cut_rate_text(const CutRate& rate) {
  constexpr double kPerCent = 100;
  if (!is_cut_short(rate.missed_at_end, rate.answered)) return {};
  const bool has_none = rate.missed_at_end >= rate.answered;
  if (has_none && rate.counted_seconds <= 0) {
    return "all requests that count were sent at one moment, so there is no rate";
  }
  const auto which = fmt::format("{} of {} answers", with_thousands(rate.missed_at_end),
                                 with_thousands(rate.answered));
  if (has_none) {
    return which + " came after the sending had ended, so there is no rate: let it send longer";
  }
  if (!rate.has_kept_up) return {};
  return fmt::format(
      "{} came after the sending had ended: answers/s may be up to {:.0f} % too low, whatever its "
      "interval says; let it send longer",
      which,
      kPerCent * static_cast<double>(rate.missed_at_end) / static_cast<double>(rate.answered));
}

std::string time_text(double seconds) {
  if (seconds < 1) return milliseconds_text(seconds) + " ms";
  return figure_text(seconds) + " s";
}

}  // namespace muster
