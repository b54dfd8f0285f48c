#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/result/trial_summary.h"

namespace muster {

/// Figures as every view of a result has them, so that a report says what the terminal said.
/// Threads of all: pure.

/// Three significant digits, without an exponent: the interval beside a figure is wider than its
/// fourth.
std::string figure_text(double value);

/// A time as milliseconds: "20.0".
std::string milliseconds_text(double seconds);

/// A rate: as `figure_text`, from 1,000 on whole with separators, since three digits would hide
/// what people compare.
std::string figure_rate_text(double rate);

/// What a comparison has of a figure: a time, an error rate as per cent ("30 %"), else a rate.
std::string compared_text(std::string_view figure, double value);

/// A ratio with three decimals: "1.063"; ">1000" from 1000 on and "<0.001" below that, since the
/// interval of few trials may end anywhere.
std::string ratio_text(double ratio);

/// Who counted the tokens of replies, by the name that a result has for it: "usage", "tokenizer",
/// else the pieces of the stream were counted.
std::string_view token_source_words(std::string_view source);

/// Why stages that a server reports are not to be believed, as one sentence without its end; empty
/// where nothing speaks against them. answered: requests that are counted.
std::string stage_doubts_text(const StageDoubts& doubts, std::uint64_t answered);

/// What the rates of a load miss at their ends: sums over its trials.
struct CutRate {
  std::uint64_t missed_at_end = 0;  // of those answered
  std::uint64_t answered = 0;
  double counted_seconds = 0;
  bool has_kept_up = true;  // in each trial
};

/// That a rate is cut short (`is_cut_short`), or that there is none for that reason, as one
/// sentence without its end; empty where neither is, and of a queue that grew where there is a
/// rate: it is that of the server.
std::string cut_rate_text(const CutRate& rate);

/// A time in the unit that suits it: "0.213 ms", "12.3 ms", "4.56 s".
std::string time_text(double seconds);

}  // namespace muster
