// A worker for tests that falls ill: it speaks the protocol of muster-worker, without torch, and
// answers rows that depend on the ids alone, so that a wrong or strange row is seen.
//
// FAULTY_WORKER holds its faults as JSON by device name, so that well devices and ill ones mix:
//   {"cpu:1": {"slow_after_s": 3, "slow_factor": 10}}
//   batch_us_per_token  what a batch costs; 0 without it
//   slow_after_s        after so many seconds a batch costs slow_factor (10) times as much
//   lie_after_s         after so many seconds one bit of every row is wrong
//   oom_above_tokens    answers ResourceExhausted to batches of more tokens
//   ill_file            well while there is no such file, so that a test says when
//   recover_after_s     neither slow nor lying nor full any more
//   crash_at_start      exits with 3 at the first so many starts
//   hang_at_start       stops before it greets (SIGSTOP), at the first so many starts
//   fail_after_s        answers Failed to every batch after so many seconds
//   fail_from_batch     likewise from its so-manieth batch on, canaries count; 1: all
//   fail_on_token       likewise to a batch that holds this token id
//   fail_from_token     likewise to a batch that holds this one or a larger
//   fail_kind           the kind of those errors; "Internal" without it
//   nan_from_batch      every row begins with a NaN from that batch on
//   nan_on_token        the row of a text that holds this token id does
//   short_from_batch    answers a row too few from that batch on
//   wide_from_batch     answers rows that are a float too long
//   hang_at_batch       stops at its so-manieth batch (SIGSTOP)
//   close_at_batch      closes its socket at its so-manieth batch, and stops
//   load_ms             what loading a model takes
//   fail_load           cannot load a model: "Unsupported", "ResourceExhausted", …
//   unkillable_s        for so long after its start no signal ends it, as if a driver held it: a
//                       tracer keeps it in its exit. Needs a kernel that lets a child trace
//   abort_on_token      aborts on a batch that holds this token id
//   state_file          where starts are counted; times run from the first of them, else from each
// A row is [dim] float32 in [0, 1); dim is hidden_size of the model's config.json, else 8.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "base/build_info.h"
#include "base/liveness_pipe.h"
#include "faults.h"
#include "net/frame_channel.h"
#include "spec/worker_arguments.h"
#include "wire/messages.h"

namespace muster {
namespace {

constexpr int kSocket = 3;

using Dims = std::map<ModelId, std::uint32_t>;  // of the loaded models

Status send(MessageType type, std::uint64_t id, const std::vector<std::byte>& payload) {
  return write_frame(kSocket, static_cast<std::uint8_t>(type), id,
                     std::array<std::span<const std::byte>, 1>{payload});
}

std::uint32_t dim_of(const std::string& folder) {
  std::ifstream file(folder + "/config.json");
  const auto config = nlohmann::json::parse(file, nullptr, false);
  return config.is_object() ? config.value("hidden_size", 8U) : 8U;
}

// FNV-1a (Fowler, Noll and Vo) over the ids, then splitmix64 for each place: every id changes every
// float. Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
// generators".
void write_row(std::span<const std::uint32_t> ids, std::span<float> row) {
  std::uint64_t seed = 14695981039346656037ULL;
  for (const auto id : ids) seed = (seed ^ id) * 1099511628211ULL;
  for (auto& value : row) {
    seed += 0x9E3779B97F4A7C15ULL;
    auto bits = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
    value = static_cast<float>(bits >> 40) * 0x1p-24F;
  }
}

// The time that a device would take.
std::chrono::nanoseconds compute(const Faults& faults, std::uint64_t tokens) {
  const double us = static_cast<double>(faults.batch_us_per_token * tokens);
  const std::chrono::duration<double, std::micro> cost(us *
                                                       (faults.is_slow() ? faults.slow_factor : 1));
  const auto begun_at = std::chrono::steady_clock::now();
  std::this_thread::sleep_until(begun_at +
                                std::chrono::duration_cast<std::chrono::nanoseconds>(cost));
  return std::chrono::steady_clock::now() - begun_at;
}

/// What the faults say of one batch.
struct Ills {
  bool is_nan = false;
  bool is_short = false;
  bool is_wide = false;
};

Status send_rows(const Faults& faults, std::uint64_t id, const Batch& batch, std::uint32_t dim,
                 const Ills& ills) {
  const auto engine = compute(faults, batch.ids.size());
  const std::uint32_t width = dim + (ills.is_wide ? 1 : 0);
  std::vector<float> rows(batch.lengths.size() * width);
  std::size_t at = 0;
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const auto row = std::span(rows).subspan(i * width, width);
    const auto ids = std::span(batch.ids).subspan(at, batch.lengths[i]);
    write_row(ids, row);
    if (faults.is_lying()) row[0] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(row[0]) ^ 1U);
    const auto ill = faults.nan_on_token;
    const bool is_ill = ill && std::find(ids.begin(), ids.end(), *ill) != ids.end();
    if (ills.is_nan || is_ill) row[0] = std::numeric_limits<float>::quiet_NaN();
    at += batch.lengths[i];
  }
  if (ills.is_short) rows.resize(rows.size() - width);
  const auto head = encode_rows_head(
      {.engine_ns = static_cast<std::uint64_t>(engine.count()), .dim = width, .rows = {}});
  return write_frame(
      kSocket, static_cast<std::uint8_t>(MessageType::Rows), id,
      std::array<std::span<const std::byte>, 2>{head, std::as_bytes(std::span(rows))});
}

Status answer(const Faults& faults, const Dims& dims, std::uint64_t id, const Batch& batch) {
  static std::uint32_t number = 0;  // of this batch
  ++number;
  const auto model = dims.find(batch.model_id);
  if (model == dims.end()) {
    return send(MessageType::Failed, id,
                encode(Failed{{ErrorKind::NotFound, "the model is not loaded"}}));
  }
  const auto deadly = faults.abort_on_token;
  if (deadly && std::find(batch.ids.begin(), batch.ids.end(), *deadly) != batch.ids.end()) {
    std::abort();
  }
  if (faults.is_full(batch.ids.size())) {
    return send(MessageType::Failed, id,
                encode(Failed{{ErrorKind::ResourceExhausted, "told to be full"}}));
  }
  const auto is_bad = [&](std::uint32_t token) {
    return token == faults.fail_on_token ||
           (faults.fail_from_token && token >= *faults.fail_from_token);
  };
  if (faults.is_failing(number) || std::any_of(batch.ids.begin(), batch.ids.end(), is_bad)) {
    return send(MessageType::Failed, id, encode(Failed{{faults.fail_kind, "told to fail"}}));
  }
  if (faults.close_at_batch == number) ::close(kSocket);
  if (faults.hang_at_batch == number || faults.close_at_batch == number) ::raise(SIGSTOP);
  return send_rows(faults, id, batch, model->second,
                   {.is_nan = faults.is_from(faults.nan_from_batch, number),
                    .is_short = faults.is_from(faults.short_from_batch, number),
                    .is_wide = faults.is_from(faults.wide_from_batch, number)});
}

Status on_load(const Faults& faults, const Load& load, Dims& dims) {
  std::this_thread::sleep_for(std::chrono::milliseconds(faults.load_ms));
  if (faults.fail_load && !faults.is_well_again()) {
    return send(MessageType::LoadFailed, 0,
                encode(LoadFailed{load.model_id, {*faults.fail_load, "told not to load"}}));
  }
  const auto dim = dim_of(load.model.model_folder);
  dims[load.model_id] = dim;
  const auto lane_count = std::max<std::size_t>(1, load.cpus.size());
  return send(MessageType::Ready, 0,
              encode(Ready{.model_id = load.model_id,
                           .dim = dim,
                           .lane_count = static_cast<std::uint32_t>(lane_count)}));
}

Status on_frame(const Faults& faults, Dims& dims, const FrameHeader& header,
                std::span<const std::byte> payload) {
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Probe:
      return send(MessageType::Verdict, 0, encode(ProbeVerdict{{{Precision::Fp32, 1000, 1, 1}}}));
    case MessageType::Load:
      return on_load(faults, MUSTER_TRY(decode_load(payload)), dims);
    case MessageType::Unload:
      dims.erase(MUSTER_TRY(decode_unload(payload)).model_id);
      return Done{};
    case MessageType::Batch:
      return answer(faults, dims, header.id, MUSTER_TRY(decode_batch(payload)));
    case MessageType::Expect:
      return Done{};
    default:
      return Error{ErrorKind::Corrupt, "unknown message"};
  }
}

// A process whose tracer has asked for it stops on its way out, and then no signal reaches it; its
// sockets stay open. So does one that a driver holds. Source: ptrace(2), PTRACE_O_TRACEEXIT.
void hold_at_exit(std::uint32_t seconds) {
  const auto held = ::getpid();
  std::array<int, 2> ready{};
  if (::pipe(ready.data()) != 0) return;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  if (::fork() == 0) {
    (void)::ptrace(PTRACE_SEIZE, held, nullptr, PTRACE_O_TRACEEXIT);
    (void)!::write(ready[1], "", 1);
    for (int fd = 0; fd < 64; ++fd) ::close(fd);  // the worker's end of file is its own
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    ::_exit(0);
  }
  char done = 0;
  (void)!::read(ready[0], &done, 1);
  ::close(ready[0]);
  ::close(ready[1]);
}

Status run(const std::string& device) {
  const auto faults = MUSTER_TRY(read_faults(device));
  if (faults.start_count <= faults.crash_at_start) {
    fmt::print(stderr, "told to crash at start {}\n", faults.start_count);
    std::exit(3);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (faults.start_count <= faults.hang_at_start) ::raise(SIGSTOP);
  MUSTER_TRY(send(MessageType::Hello, 0,
                  encode(Hello{.build = std::string(build_name()), .engine_class = "faulty"})));
  if (faults.unkillable_s > 0) hold_at_exit(faults.unkillable_s);
  Dims dims;
  return read_frames(kSocket, [&](const FrameHeader& header, std::span<const std::byte> payload) {
    return on_frame(faults, dims, header, payload);
  });
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  std::string device;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--version") {
      fmt::print("muster-worker {}\n", muster::build_name());
      return 0;
    }
    if (word == muster::kWorkerDeviceFlag && i + 1 < argc) device = argv[++i];
    if (word == muster::kWorkerLivenessFlag && i + 1 < argc) {
      (void)muster::keep_liveness_pipe(muster::UniqueFd(std::atoi(argv[++i])));
    }
  }
  const auto done = muster::run(device);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}
