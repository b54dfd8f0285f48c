// cache_bench [--dim N] [--megabytes N] [--file PATH]
//
// One thread. Prints one JSON line: nanoseconds of a key, of a hit in a full cache (uniform keys,
// the worst case for the processor's caches, and one key in ten), of a miss and of a put that
// throws out another; and with PATH, milliseconds of opening the full file again. Medians of nine
// passes.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cache/vector_cache.h"

namespace {

using muster::CacheKey;
using muster::VectorCache;

constexpr int kPasses = 9;  // the median of at least five
constexpr std::size_t kSteps = 100'000;

struct Options {
  std::size_t dim = 384;
  std::uint64_t megabytes = 256;
  std::string file;
};

// xorshift64, Marsaglia 2003.
struct Random {
  std::uint64_t state = 88172645463325252u;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

CacheKey key_of(std::uint64_t number) {
  return muster::cache_key({}, {reinterpret_cast<const char*>(&number), sizeof number}, false);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Work>
double median_seconds(Work work) {
  std::vector<double> passes;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double start = seconds_now();
    work();
    passes.push_back(seconds_now() - start);
  }
  std::nth_element(passes.begin(), passes.begin() + kPasses / 2, passes.end());
  return passes[kPasses / 2];
}

// Keys are made before the clock starts: a lookup is measured, not a hash.
template <typename Work>
double nanoseconds_each(const std::vector<CacheKey>& keys, Work work) {
  const double taken = median_seconds([&] {
    for (const auto& key : keys) work(key);
  });
  return taken / static_cast<double>(keys.size()) * 1e9;
}

bool read_options(int count, char** values, Options& options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = values[i];
    const std::string_view value = values[i + 1];
    if (name == "--file") {
      options.file = value;
    } else if (name == "--dim") {
      std::from_chars(value.data(), value.data() + value.size(), options.dim);
    } else if (name == "--megabytes") {
      std::from_chars(value.data(), value.data() + value.size(), options.megabytes);
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

}  // namespace

// Long because the measurements share what they are made on, one after the other.
int main(int argument_count, char** arguments) {
  Options options;
  if (!read_options(argument_count, arguments, options)) {
    std::fprintf(stderr, "usage: cache_bench [--dim N] [--megabytes N] [--file PATH]\n");
    return 2;
  }
  const muster::CacheOptions cache_options{.size_most = options.megabytes << 20,
                                           .file = options.file};
  auto opened = VectorCache::open(cache_options);
  if (!opened) {
    std::fprintf(stderr, "cache_bench: %s\n", opened.error().message.c_str());
    return muster::exit_code(opened.error().kind);
  }
  auto cache = std::move(*opened);
  const std::vector<float> vector(options.dim, 0.5F);
  std::uint64_t next = 0;
  while (cache->status().evicted_count == 0) cache->put(key_of(next++), vector, 0);
  const auto count = cache->status().entry_count;

  Random random;
  std::vector<CacheKey> anywhere, hot, absent;
  for (std::size_t step = 0; step < kSteps; ++step) {
    anywhere.push_back(key_of(next - 1 - random.next() % count));
    hot.push_back(key_of(next - 1 - random.next() % (count / 10 + 1)));
    absent.push_back(key_of(next + 1'000'000'000 + step));
  }
  volatile float sink = 0;
  const auto find = [&](const CacheKey& key) {
    const auto found = cache->find(key, 0);
    if (!found.empty()) sink = found.back();
  };
  const double hit = nanoseconds_each(anywhere, find);
  const double hot_hit = nanoseconds_each(hot, find);
  const double miss = nanoseconds_each(absent, find);
  const std::string text = "A sentence of sixteen tokens is about as long as this one here is.";
  const double key = median_seconds([&] {
                       for (std::size_t step = 0; step < kSteps; ++step) {
                         sink = static_cast<float>(muster::cache_key({}, text, false)[0]);
                       }
                     }) /
                     static_cast<double>(kSteps) * 1e9;
  std::vector<CacheKey> fresh;
  for (std::size_t step = 0; step < kSteps; ++step) fresh.push_back(key_of(next++));
  std::size_t used = 0;
  const double put = median_seconds([&] {
                       for (std::size_t step = 0; step < kSteps / kPasses; ++step) {
                         cache->put(fresh[used++], vector, 0);
                       }
                     }) /
                     static_cast<double>(kSteps / kPasses) * 1e9;
  double reopening = 0;
  if (!options.file.empty()) {
    reopening = median_seconds([&] {
      cache.reset();
      cache = *VectorCache::open(cache_options);
    });
  }
  std::printf(
      "{\"dim\": %zu, \"entries\": %llu, \"key_ns\": %.0f, \"hit_ns\": %.0f, \"hot_hit_ns\": %.0f, "
      "\"miss_ns\": %.0f, \"put_ns\": %.0f, \"reopening_ms\": %.1f}\n",
      options.dim, static_cast<unsigned long long>(count), key, hit, hot_hit, miss, put,
      reopening * 1e3);
  return 0;
}
