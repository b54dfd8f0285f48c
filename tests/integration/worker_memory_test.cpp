// A real worker with the real engine: what its counting allocator shows against what the planner
// says, model by model, in every precision and for batches of several sizes. Each line that begins
// with "memory" is a row of the table that ./accept plan.6 shows.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/worker_process.h"
#include "modelfile/model_description.h"
#include "planner/memory/memory_encoder.h"
#include "planner/memory/memory_model.h"
#include "wire/messages.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// A worker that is asked one thing at a time.
class AskedWorker {
 public:
  AskedWorker() {
    auto started =
        WorkerProcess::start({.program = fs::path(MUSTER_BINARY_DIR) / "bin" / "muster-worker",
                              .torch_root = {},
                              .device = {}});
    EXPECT_TRUE(started) << started.error().message;
    if (started) process_ = *std::move(started);
  }

  std::string engine_class() {
    std::string text;
    wait_for([&](const FrameHeader&, std::span<const std::byte> payload) -> Status {
      text = MUSTER_TRY(decode_hello(payload)).engine_class;
      return Done{};
    });
    return text;
  }

  Result<Ready> load(const fs::path& folder, Precision precision,
                     const std::vector<std::uint32_t>& cpus) {
    const Load request{
        .model = {.model_folder = folder.string()}, .precision = precision, .cpus = cpus};
    send(MessageType::Load, 0, encode(request));
    Result<Ready> answer = Error{ErrorKind::Unavailable, "the worker said nothing"};
    wait_for([&](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
      if (static_cast<MessageType>(header.type) == MessageType::Ready) {
        answer = decode_ready(payload);
      } else {
        answer = MUSTER_TRY(decode_load_failed(payload)).error;
      }
      return Done{};
    });
    return answer;
  }

  // The peak so far, after `count` batches of this shape, of which at most `in_flight` are there at
  // once.
  std::uint64_t peak_after(std::uint32_t texts, std::uint32_t tokens, std::uint32_t count = 1,
                           std::uint32_t in_flight = 1) {
    const Batch batch{.lengths = std::vector<std::uint32_t>(texts, tokens),
                      .ids = std::vector<std::uint32_t>(std::size_t{texts} * tokens, 5)};
    std::uint64_t peak = 0;
    std::uint32_t sent = 0;
    std::uint32_t answered = 0;
    while (answered < count && !testing::Test::HasFatalFailure()) {
      while (sent < count && sent - answered < in_flight) {
        send(MessageType::Batch, ++sent, encode(batch));
      }
      wait_for([&](const FrameHeader&, std::span<const std::byte> payload) -> Status {
        peak = std::max(peak, MUSTER_TRY(decode_rows(payload)).activation_peak_bytes);
        ++answered;
        return Done{};
      });
    }
    return peak;
  }

 private:
  using OnFrame = std::function<Status(const FrameHeader&, std::span<const std::byte>)>;

  void send(MessageType type, std::uint64_t id, std::vector<std::byte> payload) {
    EXPECT_TRUE(process_->channel().send(static_cast<std::uint8_t>(type), id, std::move(payload)));
  }

  // Waits until a frame or more have come: two minutes at most.
  void wait_for(const OnFrame& on_frame) {
    bool has_come = false;
    while (!has_come) {
      const bool wants_write = process_->channel().wants_write();
      pollfd waiting{process_->channel().fd(),
                     static_cast<short>(wants_write ? POLLIN | POLLOUT : POLLIN), 0};
      ASSERT_EQ(::poll(&waiting, 1, 120'000), 1) << "the worker is silent";
      ASSERT_TRUE(!wants_write || process_->channel().flush());
      const auto more = process_->channel().read_available(
          [&](const FrameHeader& header, std::span<const std::byte> payload) {
            has_come = true;
            return on_frame(header, payload);
          });
      ASSERT_TRUE(more) << more.error().message;
      ASSERT_TRUE(*more) << "the worker ended: " << process_->stderr_tail();
    }
  }

  std::unique_ptr<WorkerProcess> process_;
};

CpuKernels kernels_of(const std::string& engine_class) {
  if (engine_class.find("+avx512_bf16") != std::string::npos) return CpuKernels::Avx512Bf16;
  return engine_class.find("+avx512_f") != std::string::npos ? CpuKernels::Avx512
                                                             : CpuKernels::Avx2;
}

EncoderRun run_of(Precision precision, const std::string& engine_class) {
  return {.element_bytes = precision == Precision::Bf16 ? 2U : 4U,
          .kernels = kernels_of(engine_class),
          .is_int8 = precision == Precision::Int8};
}

struct Case {
  std::string model;
  Precision precision;
};

std::optional<fs::path> folder_of(const std::string& model) {
  if (model != "all-MiniLM-L6-v2") {
    return fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata" / model;
  }
  const char* named = std::getenv("MUSTER_MINILM");
  const auto folder =
      named != nullptr ? fs::path(named) : fs::path(MUSTER_SOURCE_DIR) / ".deps/models" / model;
  return fs::exists(folder / "model.safetensors") ? std::optional(folder) : std::nullopt;
}

class WorkerMemoryTest : public testing::TestWithParam<Case> {
 protected:
  static void compare(const std::string& what, std::uint64_t predicted, std::uint64_t measured) {
    const auto error = 100 * (static_cast<double>(predicted) / static_cast<double>(measured) - 1);
    fmt::print("memory {} {} {} {} {} {:+.3f}\n", GetParam().model,
               precision_name(GetParam().precision), what, predicted, measured, error);
    EXPECT_LE(std::abs(error), 1.0) << what;
  }
};

TEST_P(WorkerMemoryTest, ThePlannersEncoderIsTheWorkersWithinOnePercent) {
  const auto folder = folder_of(GetParam().model);
  if (!folder) GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  const auto model = describe_model(*folder);
  ASSERT_TRUE(model) << model.error().message;
  const auto& shape = model->shape;
  AskedWorker worker;
  const auto run = run_of(GetParam().precision, worker.engine_class());
  const auto ready = worker.load(*folder, GetParam().precision, {});
  if (!ready && ready.error().kind == ErrorKind::Unsupported) {
    GTEST_SKIP() << ready.error().message;
  }
  ASSERT_TRUE(ready) << ready.error().message;

  auto weights = encoder_table_bytes(shape);
  for (const auto& layer : shape.layers) weights += encoder_layer_bytes(shape, layer, run);
  compare("weights", weights, ready->weights_bytes);
  const auto load = encoder_load_bytes(shape, run, true);
  // A tensor that odd sizes shift away from 8 bytes in the file is copied, as one of another type.
  const bool is_aligned = (shape.hidden_size | shape.layers.front().intermediate_size) % 2 == 0;
  if (is_aligned) {
    compare("load", load, ready->load_peak_bytes);
  } else {
    EXPECT_GE(ready->load_peak_bytes, load);
    EXPECT_LE(ready->load_peak_bytes, std::max(load, encoder_load_bytes(shape, run, false)));
  }
  // Each batch takes more than the one before it, so the peak so far is its own.
  const auto longest = std::min<std::uint32_t>(40, shape.length_max);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> batches{
      {1, 1},       {1, 20},  {3, 20},  {6, 16},  {10, 16},
      {4, longest}, {12, 16}, {14, 16}, {20, 16}, {64, 16}};
  for (const auto& [texts, tokens] : batches) {
    compare(fmt::format("{}x{}", texts, tokens), encoder_lane_bytes(shape, texts, tokens, run),
            worker.peak_after(texts, tokens));
  }
}

TEST_P(WorkerMemoryTest, LanesNeverTakeMoreThanThePlannerSays) {
  const auto folder = folder_of(GetParam().model);
  if (!folder) GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  const auto model = describe_model(*folder);
  ASSERT_TRUE(model) << model.error().message;
  AskedWorker worker;
  auto run = run_of(GetParam().precision, worker.engine_class());
  if (!worker.load(*folder, GetParam().precision, {0, 1})) GTEST_SKIP() << "not in this precision";
  const auto peak = worker.peak_after(64, 16, 12, 4);  // two a lane, as muster does
  EXPECT_GE(peak, encoder_lane_bytes(model->shape, 64, 16, run));
  run.lanes = 2;
  EXPECT_LE(peak, 2 * encoder_lane_bytes(model->shape, 64, 16, run));
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const auto* model :
       {"all-MiniLM-L6-v2", "bert", "bert_odd", "roberta", "xlm_roberta", "distilbert", "mpnet"}) {
    for (const auto precision : {Precision::Fp32, Precision::Bf16, Precision::Int8}) {
      result.push_back({model, precision});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Models, WorkerMemoryTest, testing::ValuesIn(cases()),
                         [](const auto& tested) {
                           auto name = tested.param.model + "_" +
                                       std::string(precision_name(tested.param.precision));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// What people are told by `muster plan` is the same figure.
TEST(WorkerMemory, AStageIsTheSumOfWhatTheWorkerHolds) {
  const auto model = describe_model(*folder_of("bert"));
  ASSERT_TRUE(model) << model.error().message;
  Workload workload;
  workload.task = PlanTask::Embed;
  workload.batch = 64;
  workload.context = 16;
  const StageShare share{.last_unit = static_cast<std::uint32_t>(model->units.size()),
                         .is_gpu = false};
  const auto parts = stage_memory(*model, workload, share);
  ASSERT_TRUE(parts) << parts.error().message;
  const EncoderRun run;
  EXPECT_EQ(parts->activations, std::max(encoder_load_bytes(model->shape, run, true),
                                         encoder_lane_bytes(model->shape, 64, 16, run)));
  EXPECT_EQ(parts->weights,
            encoder_table_bytes(model->shape) +
                model->shape.layers.size() *
                    encoder_layer_bytes(model->shape, model->shape.layers.front(), run));
}

}  // namespace
}  // namespace muster
