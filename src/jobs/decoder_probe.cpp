// One question to a worker of its own. It is killed whenever the question is not wanted any more,
// whatever it is doing, as nothing of it must survive.

#include "jobs/decoder_probe.h"

#include <fmt/format.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "coordinator/worker_process.h"
#include "wire/messages.h"

namespace muster {
namespace {

constexpr int kLookMs = 100;  // between looks at whether it is still wanted
constexpr Duration kReapLimit = std::chrono::seconds(1);
// Nothing between two looks takes so long: this process stood still, as a paused container does.
constexpr Duration kPause = std::chrono::seconds(2);

using Answer = std::optional<Result<DecoderVerdict>>;

// The first answer counts: a worker that was refused may have sent its verdict with the same bytes.
Status on_frame(const DecoderProbeOptions& options, const FrameHeader& header,
                std::span<const std::byte> payload, Answer& answer) {
  if (answer) return Done{};
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Hello: {
      const auto hello = MUSTER_TRY(decode_hello(payload));
      if (hello.protocol == Hello::kProtocol && hello.build == options.build) return Done{};
      answer = Error{ErrorKind::Unsupported,
                     fmt::format("{} is of another build: it is {}, this is {}",
                                 options.worker_program.string(), hello.build, options.build)};
      return Done{};
    }
    case MessageType::DecoderVerdict:
      answer = decode_decoder_verdict(payload);
      return Done{};
    case MessageType::Failed:
      answer = MUSTER_TRY(decode_failed(payload)).error;
      return Done{};
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker sent an unknown message: type {}", header.type)};
  }
}

// Its last words are the reason, where it had some.
Error death_of(WorkerProcess& process, const DecoderProbeOptions& options, std::string words) {
  process.kill_if_alive();
  process.read_stderr([&words](const std::string& line) { words = line; });
  const auto death = process.reap(kReapLimit).value_or(WorkerDeath{"it does not end", true, 0});
  return {ErrorKind::Unavailable, fmt::format("{}: the worker died ({}{}{})", options.device.name(),
                                              death.reason, words.empty() ? "" : ": ", words)};
}

}  // namespace

Result<DecoderVerdict> probe_decoder(const DecoderProbeOptions& options, const ProbeDecoder& probe,
                                     const Clock& clock, const std::function<bool()>& cancelled) {
  const auto process = MUSTER_TRY(WorkerProcess::start({.program = options.worker_program,
                                                        .torch_root = options.torch_root,
                                                        .device = options.device}));
  auto& channel = process->channel();
  // One that is gone is noticed by the next read.
  (void)channel.send(static_cast<std::uint8_t>(MessageType::ProbeDecoder), 0, encode(probe));
  auto looked_at = clock.now();
  auto until = looked_at + options.time_most;
  Answer answer;
  std::string words;
  while (!answer) {
    // One that nobody listens to would stop once the pipe is full.
    process->read_stderr([&words](const std::string& line) { words = line; });
    if (cancelled()) return Error{ErrorKind::Cancelled, "the measurement was interrupted"};
    const auto now = clock.now();
    if (const auto gap = now - std::exchange(looked_at, now); gap >= kPause) until += gap;
    if (now >= until) {
      return Error{ErrorKind::DeadlineExceeded,
                   fmt::format("{}: the worker was not done within {:.0f} s", options.device.name(),
                               seconds(options.time_most))};
    }
    const short write = channel.wants_write() ? POLLOUT : 0;
    pollfd waiting{channel.fd(), static_cast<short>(POLLIN | write), 0};
    if (::poll(&waiting, 1, kLookMs) <= 0) continue;
    if ((waiting.revents & POLLOUT) != 0) (void)channel.flush();
    if ((waiting.revents & ~POLLOUT) == 0) continue;
    const auto more =
        channel.read_available([&](const FrameHeader& header, std::span<const std::byte> payload) {
          return on_frame(options, header, payload, answer);
        });
    if (!answer && (!more || !*more)) return death_of(*process, options, words);
  }
  return *std::move(answer);
}

}  // namespace muster
