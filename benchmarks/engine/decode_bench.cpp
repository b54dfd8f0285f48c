// How fast a decoder computes: prefill, one stream, and many streams at once, without anything
// around it. Where its cache is named, also one stream far into a context, where a step reads more
// keys and values than anywhere else.
//
//   decode_bench MODEL [fp32|bf16|own|int8] [threads] [rounds] [cpu|cuda|standin]
//                [auto|fp32|fp16|int8]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "engine/decoder/decoder.h"
#include "engine/encoder.h"
#include "engine/gpu.h"
#include "modelfile/decoder_config.h"

namespace {

using muster::engine::Decoder;
using muster::engine::StepSequence;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Sequences side by side in one decoder, each with blocks of its own.
class Streams {
 public:
  Streams(Decoder& decoder, std::size_t count) : decoder_(decoder), count_(count) {
    const std::size_t each = decoder.block_count() / count;
    for (std::size_t i = 0; i < count; ++i) {
      auto& blocks = blocks_.emplace_back(each);
      std::iota(blocks.begin(), blocks.end(), static_cast<std::uint32_t>(i * each));
    }
    logits_.resize(count * decoder.vocab_size());
  }

  /// One step with so many tokens of every stream. Ids are of no meaning.
  void step(std::size_t tokens) {
    std::vector<std::uint32_t> ids(tokens);
    for (auto& id : ids) id = static_cast<std::uint32_t>(next_++ * 7919 % decoder_.vocab_size());
    std::vector<StepSequence> steps;
    for (std::size_t i = 0; i < count_; ++i) steps.push_back({ids, position_, blocks_[i], true});
    const auto done = decoder_.step(steps, logits_);
    if (!done) {
      fmt::print(stderr, "{}\n", done.error().message);
      std::exit(1);
    }
    position_ += static_cast<std::uint32_t>(tokens);
  }

 private:
  Decoder& decoder_;
  std::size_t count_;
  std::uint32_t position_ = 0;
  std::uint64_t next_ = 1;
  std::vector<std::vector<std::uint32_t>> blocks_;
  std::vector<float> logits_;
};

// Makes this thread the lane of a device.
muster::Status enter(const std::string& device, muster::engine::DecoderOptions& options) {
  if (device == "cuda") options.device = muster::DeviceKind::Cuda;
  if (device == "standin") options.device = muster::DeviceKind::Standin;
  if (muster::runs_as_gpu(options.device)) {
    MUSTER_TRY(muster::engine::open_gpu(options.device));
  }
  muster::engine::enter_lane(options.device);
  return muster::Done{};
}

/// Tokens a second of each kind, by round.
struct Rates {
  std::vector<double> prefill, one, eight, many, far;
};

constexpr std::size_t kFar = 4096;  // positions before; SmolLM2 has 8,192

void measure(Decoder& decoder, bool has_far, Rates& rates) {
  const double prefill_begin = seconds_now();
  Streams(decoder, 1).step(512);
  rates.prefill.push_back(512 / (seconds_now() - prefill_begin));
  const auto generate = [&](std::size_t streams, std::size_t tokens) {
    Streams all(decoder, streams);
    for (int i = 0; i < 8; ++i) all.step(16);  // 128 before
    const double begin = seconds_now();
    for (std::size_t i = 0; i < tokens; ++i) all.step(1);
    return static_cast<double>(tokens * streams) / (seconds_now() - begin);
  };
  rates.one.push_back(generate(1, 128));
  rates.eight.push_back(generate(8, 32));
  rates.many.push_back(generate(32, 16));
  if (!has_far) return;
  Streams alone(decoder, 1);
  for (std::size_t i = 0; i < kFar; i += 512) alone.step(512);
  const double begin = seconds_now();
  for (int i = 0; i < 32; ++i) alone.step(1);
  rates.far.push_back(32 / (seconds_now() - begin));
}

void show(const Rates& rates, double weights_bytes) {
  const auto line = [](const char* name, const std::vector<double>& values) {
    fmt::print("{:<28} {:8.1f} tok/s (best {:.1f})\n", name, median(values),
               *std::max_element(values.begin(), values.end()));
  };
  line("prefill of 512", rates.prefill);
  line("1 stream, 128 after 128", rates.one);
  line("8 streams, 32 after 128", rates.eight);
  line("32 streams, 16 after 128", rates.many);
  if (!rates.far.empty()) line("1 stream, 32 after 4,096", rates.far);
  fmt::print("{:<28} {:8.1f} GB/s of weights read\n", "1 stream",
             median(rates.one) * weights_bytes / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: decode_bench MODEL [fp32|bf16|own|int8] [threads] [rounds] "
               "[cpu|cuda|standin] [auto|fp32|fp16|int8]\n");
    return 2;
  }
  muster::engine::DecoderOptions options;
  options.source = argv[1];
  const auto spec = muster::read_decoder_spec(options.source);
  const auto precision = muster::parse_decoder_precision(argc > 2 ? argv[2] : "own");
  const auto cache = muster::parse_kv_cache_dtype(argc > 6 ? argv[6] : "auto");
  if (!spec || !precision || !cache) {
    fmt::print(stderr, "{}\n", spec ? "no such precision, or cache" : spec.error().message);
    return 1;
  }
  options.spec = *spec;
  options.precision = *precision;
  options.kv_cache_dtype = *cache;
  options.thread_count = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  options.block_count = 32 * 24;
  const std::size_t rounds = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 5;
  const std::string device = argc > 5 ? argv[5] : "cpu";
  if (const auto entered = enter(device, options); !entered) {
    fmt::print(stderr, "{}\n", entered.error().message);
    return 1;
  }
  options.on_thread_start = [](std::size_t) { muster::engine::enter_lane(); };
  const double load_begin = seconds_now();
  const auto decoder = Decoder::load(options);
  if (!decoder) {
    fmt::print(stderr, "{}\n", decoder.error().message);
    return 1;
  }
  fmt::print("{} {} on {}, threads {}: loaded in {:.2f} s, {:.1f} MB of weights\n", argv[1],
             muster::decoder_precision_name(*precision), device, options.thread_count,
             seconds_now() - load_begin, static_cast<double>((*decoder)->weights_bytes()) / 1e6);
  Rates rates;
  for (std::size_t round = 0; round < rounds; ++round) measure(**decoder, argc > 6, rates);
  show(rates, static_cast<double>((*decoder)->weights_bytes()));
  return 0;
}
