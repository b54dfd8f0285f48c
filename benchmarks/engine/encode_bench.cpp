// Tokens per second of the encoder on this machine's CPU or GPU, without tokenizing: random ids in
// batches of a fixed shape.
//
//   encode_bench MODEL_FOLDER [--device cpu|cuda|standin] [--precision fp32|bf16|fp16|int8]
//                [--shape 32x128]... [--lanes N] [--helpers N] [--seconds S]
//   encode_bench MODEL_FOLDER ... --serve     a shape per line on stdin, a JSON line for each
//
// --helpers: idle lanes, which help those that compute.
//
// With --serve another program can interleave its own rounds with ours, so that both see the same
// machine; ./accept spine.9 does.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/encoder.h"
#include "engine/ops/lane_team.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kServeSeconds = 0.5;  // long enough for noise of milliseconds, short to interleave

struct Arguments {
  std::string model;
  Precision precision = Precision::Fp32;
  DeviceKind device = DeviceKind::Cpu;
  std::vector<std::string> shapes;
  unsigned lane_count = 1;
  unsigned helper_count = 0;
  double seconds = 3;
  bool serve = false;
};

struct Shape {
  std::uint32_t text_count = 0;
  std::uint32_t length = 0;
};

struct Round {
  std::uint64_t tokens = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;

  double tokens_per_second() const { return static_cast<double>(tokens) / wall_seconds; }
};

std::optional<Shape> parse_shape(const std::string& text) {
  Shape shape;
  const auto* end = text.data() + text.size();
  const auto count = std::from_chars(text.data(), end, shape.text_count);
  if (count.ec != std::errc() || count.ptr == end || *count.ptr != 'x') return std::nullopt;
  const auto length = std::from_chars(count.ptr + 1, end, shape.length);
  if (length.ec != std::errc() || length.ptr != end) return std::nullopt;
  if (shape.text_count == 0 || shape.length == 0) return std::nullopt;
  return shape;
}

std::optional<DeviceKind> parse_device(std::string_view name) {
  for (const auto kind : {DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Standin}) {
    if (name == device_kind_name(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word == "--serve") {
      arguments.serve = true;
    } else if (!word.starts_with("--") && arguments.model.empty()) {
      arguments.model = word;
    } else if (i + 1 == words.size()) {
      return std::nullopt;
    } else if (word == "--shape") {
      arguments.shapes.push_back(words[++i]);
    } else if (word == "--lanes") {
      arguments.lane_count = static_cast<unsigned>(std::max(1, std::atoi(words[++i].c_str())));
    } else if (word == "--helpers") {
      arguments.helper_count = static_cast<unsigned>(std::max(0, std::atoi(words[++i].c_str())));
    } else if (word == "--seconds") {
      arguments.seconds = std::atof(words[++i].c_str());
    } else if (word == "--device") {
      const auto device = parse_device(words[++i]);
      if (!device) return std::nullopt;
      arguments.device = *device;
    } else if (word == "--precision") {
      const auto precision = parse_precision(words[++i]);
      if (!precision) return std::nullopt;
      arguments.precision = *precision;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.model.empty()) return std::nullopt;
  if (arguments.shapes.empty()) arguments.shapes = {"32x128", "32x16", "200x20"};
  return arguments;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Idle lanes behind those that compute, for as long as it lives.
class Helpers {
 public:
  Helpers(engine::LaneTeam& team, const Arguments& arguments)
      : team_(team), calls_(team.call_count()) {
    for (unsigned i = 0; i < arguments.helper_count; ++i) {
      threads_.emplace_back([this, &arguments, i] {
        engine::enter_lane(arguments.device);
        team_.help(arguments.lane_count + i, calls_);
      });
    }
  }
  ~Helpers() {
    team_.call_all();
    for (auto& thread : threads_) thread.join();
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

 private:
  engine::LaneTeam& team_;
  const std::uint32_t calls_;
  std::vector<std::thread> threads_;
};

// One batch per lane at a time until `seconds` are over; at least one batch each.
Round run_round(const engine::Encoder& encoder, const Shape& shape, std::uint32_t vocab_size,
                const Arguments& arguments, double seconds) {
  const auto lane_count = arguments.lane_count;
  std::vector<std::uint32_t> lengths(shape.text_count, shape.length);
  std::vector<std::uint32_t> ids(std::size_t{shape.text_count} * shape.length);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::uint32_t>(i * 7919 % vocab_size);
  }
  std::vector<std::uint64_t> batches(lane_count, 0);
  engine::LaneTeam team(lane_count + arguments.helper_count);
  const Helpers helpers(team, arguments);
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  std::vector<std::thread> lanes;
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    lanes.emplace_back([&, lane] {
      engine::enter_lane(arguments.device);
      std::vector<float> rows(lengths.size() * encoder.dim());
      engine::LaneSeat seat(team, lane);
      do {
        if (const auto status = encoder.encode({ids, lengths}, rows, seat); !status) {
          fmt::print(stderr, "encode_bench: {}\n", status.error().message);
          std::exit(exit_code(status.error().kind));
        }
        ++batches[lane];
      } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
    });
  }
  for (auto& lane : lanes) lane.join();
  Round round;
  round.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  round.cpu_seconds = cpu_seconds() - cpu_start;
  for (const auto count : batches) round.tokens += count * ids.size();
  return round;
}

void print_round(const std::string& shape, const Arguments& arguments, const Round& round,
                 double median, std::uint64_t peak_bytes) {
  fmt::print(
      "{{\"shape\": \"{}\", \"precision\": \"{}\", \"lanes\": {}, \"tokens\": {}, "
      "\"wall_seconds\": {:.6f}, \"cpu_seconds\": {:.6f}, \"tokens_per_second\": {:.1f}, "
      "\"activation_peak_bytes\": {}}}\n",
      shape, precision_name(arguments.precision), arguments.lane_count, round.tokens,
      round.wall_seconds, round.cpu_seconds, median, peak_bytes);
  std::fflush(stdout);
}

// Warms up with a batch per lane, then prints the median of the rounds.
bool measure(const engine::Encoder& encoder, std::uint32_t vocab_size, const Arguments& arguments,
             const std::string& text, int round_count, double seconds) {
  const auto shape = parse_shape(text);
  if (!shape) {
    fmt::print(stderr, "encode_bench: not a shape like 32x128: {}\n", text);
    return false;
  }
  run_round(encoder, *shape, vocab_size, arguments, 0);
  Round total;
  std::vector<double> speeds;
  for (int i = 0; i < round_count; ++i) {
    const auto round = run_round(encoder, *shape, vocab_size, arguments, seconds / round_count);
    total.tokens += round.tokens;
    total.wall_seconds += round.wall_seconds;
    total.cpu_seconds += round.cpu_seconds;
    speeds.push_back(round.tokens_per_second());
  }
  const auto middle = speeds.begin() + round_count / 2;
  std::nth_element(speeds.begin(), middle, speeds.end());
  print_round(text, arguments, total, *middle, encoder.activation_peak_bytes());
  return true;
}

int run(const Arguments& arguments) {
  const auto fail = [](const Error& error) {
    fmt::print(stderr, "encode_bench: {}\n", error.message);
    return exit_code(error.kind);
  };
  const auto folder = find_model(arguments.model);
  if (!folder) return fail(folder.error());
  const auto model = read_model_folder(*folder);
  if (!model) return fail(model.error());
  const auto start = Clock::now();
  const auto encoder = engine::Encoder::load({.model_folder = *folder,
                                              .encoder = model->encoder,
                                              .pooling = model->sentence.pooling,
                                              .normalize = model->sentence.normalize,
                                              .precision = arguments.precision,
                                              .device = arguments.device});
  if (!encoder) return fail(encoder.error());
  const auto counts = (*encoder)->row_counts();
  fmt::print(stderr, "loaded in {:.3f} s, row counts: {}, {}\n",
             std::chrono::duration<double>(Clock::now() - start).count(),
             counts.empty() ? "any" : fmt::format("{}", fmt::join(counts, " ")),
             engine::engine_class(arguments.device));

  const auto measure_shape = [&](const std::string& shape, int round_count, double seconds) {
    return measure(**encoder, model->encoder.vocab_size, arguments, shape, round_count, seconds);
  };
  constexpr int kRounds = 7;
  for (const auto& shape : arguments.serve ? std::vector<std::string>() : arguments.shapes) {
    if (!measure_shape(shape, kRounds, arguments.seconds))
      return exit_code(ErrorKind::InvalidArgument);
  }
  for (std::string line; arguments.serve && std::getline(std::cin, line);) {
    if (!measure_shape(line, 1, kServeSeconds)) return exit_code(ErrorKind::InvalidArgument);
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const auto arguments = muster::parse_arguments({argv + 1, argv + argc});
  if (!arguments) {
    fmt::print(stderr,
               "usage: encode_bench MODEL_FOLDER [--device cpu|cuda|standin] "
               "[--precision fp32|bf16|fp16|int8] [--shape 32x128]... [--lanes N] [--helpers N] "
               "[--seconds S] [--serve]\n");
    return muster::exit_code(muster::ErrorKind::InvalidArgument);
  }
  return muster::run(*arguments);
}
