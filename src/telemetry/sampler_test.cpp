// The sampler by itself, asked as a collector asks it.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>
#include <vector>

#include "telemetry/sampler_process.h"
#include "wire/telemetry_messages.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

// A collector may ask as soon as it knows the machine, and the sampler tells that before it
// samples.
TEST(Sampler, EdgesAreSoughtThoughTheyAreAskedForBeforeAnythingIsSampled) {
  const auto program = SamplerProgram::open({});
  const auto page = CallPage::create();
  const auto ring = SampleRing::create();
  ASSERT_TRUE(program && page && ring);
  const auto sampler = SamplerProcess::start(*program, *page, *ring);
  ASSERT_TRUE(sampler) << sampler.error().message;
  auto& channel = (*sampler)->channel();
  Watch watch;
  watch.simulated = "sim:2xL4-24G";
  watch.periods.fill(milliseconds(100));
  ASSERT_TRUE(
      channel.send(static_cast<std::uint8_t>(TelemetryMessageType::Watch), 0, encode(watch)));
  ASSERT_TRUE(channel.send(static_cast<std::uint8_t>(TelemetryMessageType::FindEdges), 7,
                           encode(FindEdges{milliseconds(250)})));
  std::optional<std::vector<EdgeFound>> edges;
  const auto on_frame = [&](const FrameHeader& header, std::span<const std::byte> payload) {
    if (static_cast<TelemetryMessageType>(header.type) != TelemetryMessageType::Edges) {
      return Status(Done{});
    }
    EXPECT_EQ(header.id, 7U);
    edges = *decode_edges(payload);
    return Status(Done{});
  };
  while (!edges) {
    pollfd readable{channel.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 30'000), 1);
    const auto is_open = channel.read_available(on_frame);
    ASSERT_TRUE(is_open && *is_open);
  }
  EXPECT_EQ(edges->size(), 2U) << "one of each device";
}

// A process whose tracer has asked for it stops on its way out, and then no signal reaches it: so
// does one that a driver holds. Source: ptrace(2), PTRACE_O_TRACEEXIT.
TEST(Sampler, OneThatNoSignalEndsHoldsNobodyUp) {
  const auto program = SamplerProgram::open({});
  const auto page = CallPage::create();
  const auto ring = SampleRing::create();
  ASSERT_TRUE(program && page && ring);
  const auto sampler = SamplerProcess::start(*program, *page, *ring);
  ASSERT_TRUE(sampler) << sampler.error().message;
  const auto pid = (*sampler)->pid();
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACEEXIT) != 0) {
    GTEST_SKIP() << "no tracing here";
  }
  const auto death = (*sampler)->reap();
  EXPECT_EQ(death.reason, "no end after a kill: a call into a driver holds it");
  EXPECT_TRUE(death.is_own_fault) << "the device of that call is to be left out";
  EXPECT_EQ(::kill(pid, 0), 0) << "it is still there";
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSTOPPED(status)) << "on its way out";
  EXPECT_EQ(::ptrace(PTRACE_DETACH, pid, nullptr, nullptr), 0);
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace muster
