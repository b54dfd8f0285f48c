// tokenizer_bench TOKENIZER_JSON TEXTFILE [--length-max N]
//
// One thread, a warm scratch. Prints one JSON line: how fast whole records (the lines of TEXTFILE)
// are encoded, and what a text of 1 MB cut to N tokens costs against one of 4 kB. Medians of nine
// passes; the rates by wall time and, for a machine with other work to do, by processor time.

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "tokenizer/tokenizer.h"

namespace {

using muster::TokenId;
using muster::Tokenizer;

constexpr int kPasses = 9;  // the median of at least five
constexpr std::uint32_t kNoLimit = 0xFFFFFFFF;
constexpr std::size_t kLongSize = 1'000'000;
constexpr std::size_t kShortSize = 4'000;
constexpr int kCutRepeatsMax = 200;  // a cut text takes microseconds, too short to time once
constexpr double kCutPassSeconds = 0.02;

struct Duration {
  double wall = 0;
  double cpu = 0;  // of this thread
};

Duration now() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_THREAD_CPUTIME_ID)};
}

template <typename Work>
Duration duration_of(Work work) {
  const Duration start = now();
  work();
  const Duration end = now();
  return {end.wall - start.wall, end.cpu - start.cpu};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Work>
Duration median_duration(Work work) {
  work();  // fills the word cache
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Duration duration = duration_of(work);
    wall.push_back(duration.wall);
    cpu.push_back(duration.cpu);
  }
  return {median(wall), median(cpu)};
}

std::string words_of_size(const std::vector<std::string>& lines, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size && !lines.empty(); i = (i + 1) % lines.size()) {
    text.append(lines[i]).push_back(' ');
  }
  return text.substr(0, muster::trim(text.substr(0, size)).size());
}

int fail(std::string_view message) {
  std::fprintf(stderr, "tokenizer_bench: %.*s\n", static_cast<int>(message.size()), message.data());
  return 2;
}

/// Processor seconds of one text cut to `length_max` tokens.
double cut_seconds(const Tokenizer& tokenizer, const std::string& text, std::uint32_t length_max) {
  const auto scratch = tokenizer.make_scratch();
  std::vector<TokenId> ids;
  const auto once = [&] {
    ids.clear();
    tokenizer.encode(text, length_max, *scratch, ids);
  };
  const double first = duration_of(once).cpu;
  const int repeats = std::clamp(static_cast<int>(kCutPassSeconds / first), 1, kCutRepeatsMax);
  const auto pass = median_duration([&] {
    for (int i = 0; i < repeats; ++i) {
      once();
    }
  });
  return pass.cpu / repeats;
}

void run(const Tokenizer& tokenizer, const std::vector<std::string>& lines,
         std::uint32_t length_max, Duration load) {
  const auto scratch = tokenizer.make_scratch();
  std::vector<TokenId> ids;
  std::size_t bytes = 0;
  std::size_t tokens = 0;
  const Duration pass = median_duration([&] {
    bytes = 0;
    tokens = 0;
    for (const std::string& line : lines) {
      ids.clear();
      tokens += tokenizer.encode(line, kNoLimit, *scratch, ids).token_count;
      bytes += line.size();
    }
  });
  const double long_cut = cut_seconds(tokenizer, words_of_size(lines, kLongSize), length_max);
  const double short_cut = cut_seconds(tokenizer, words_of_size(lines, kShortSize), length_max);
  const double megabytes = static_cast<double>(bytes) / 1e6;
  std::printf(
      "{\"texts\":%zu,\"bytes\":%zu,\"tokens\":%zu,\"mb_per_s\":%.1f,\"mb_per_cpu_s\":%.1f,"
      "\"load_ms\":%.2f,\"load_cpu_ms\":%.2f,\"length_max\":%u,\"cut_1mb_us\":%.2f,"
      "\"cut_4kb_us\":%.2f,\"cut_ratio\":%.3f}\n",
      lines.size(), bytes, tokens, megabytes / pass.wall, megabytes / pass.cpu, load.wall * 1e3,
      load.cpu * 1e3, length_max, long_cut * 1e6, short_cut * 1e6, long_cut / short_cut);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t length_max = 256;
  const bool has_length = argc == 5 && std::string_view(argv[3]) == "--length-max";
  if (argc != 3 && !has_length) {
    return fail("usage: tokenizer_bench TOKENIZER_JSON TEXTFILE [--length-max N]");
  }
  if (has_length) {
    const std::string_view number = argv[4];
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), length_max);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) {
      return fail("--length-max needs a count");
    }
  }
  const Duration start = now();
  const auto tokenizer = Tokenizer::load(argv[1]);
  const Duration end = now();
  if (!tokenizer) {
    return fail(tokenizer.error().message);
  }
  if (length_max < (*tokenizer)->special_token_count()) {
    return fail("--length-max leaves no room for the special tokens");
  }
  const auto content = muster::read_file(argv[2]);
  if (!content) {
    return fail(content.error().message);
  }
  std::vector<std::string> lines = muster::split(*content, '\n');
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  if (lines.empty()) {
    return fail("the text file is empty");
  }
  run(**tokenizer, lines, length_max, {end.wall - start.wall, end.cpu - start.cpu});
  return 0;
}
