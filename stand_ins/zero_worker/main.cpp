// A worker for tests: it speaks the protocol of muster-worker, without torch, and returns zeros, or
// in echo mode [sum of ids, token count, model id, ids of segment 0, 0, …].
// ZERO_WORKER holds its orders as words:
//   dim=8         the dimension it claims for vectors
//   echo          rows that tell which text they belong to
//   count_expects and in a fifth place how often it was told to expect a batch before this one
//   abort_on=103  aborts on a batch that holds this token id
//   fail_on=103   answers Failed on a batch that holds this token id
//   nan_on=103    answers with rows of NaN for texts that hold this token id
//   hang_on=103   stops answering on a batch that holds this token id
//   spin_on=103   computes for ever on a batch that holds this token id
//   oom_above=64  answers ResourceExhausted to batches of more tokens
//   full_on=103   likewise to a batch that holds this token id
//   exit_at_start says a last word and exits with 3 before it greets
//   exit_on=1     the same on the CPU device of that index
//   stop_on=1     stops before it greets on the CPU device of that index
//   fail_load     cannot load the model
//   fail_model=2  cannot load the model of that number
//   full_at=1     has no memory to load a model on the CPU device of that index
//   hang_load=2   stops at loading the model of that number
//   hold_on=1     loads on the CPU device of that index once somebody writes into the FIFO `go`
//   hang_probe    stops at measuring precisions
//   kill_probe    ends there by a signal that looks as if somebody outside had sent it
//   abort_probe=1 aborts there on the CPU device of that index
//   other_on=1    is of another engine class on the CPU device of that index
//   none_on=1     the same, of a GPU whose driver does not find it: it measures nothing
//   wrong_product answers a compute test with one entry of a product wrong
//   slow_product  answers that a round of it took a minute
//   fail_product  answers Failed to it
//   hang_product  stops at it
//   other_build   claims to be of another build
// ZERO_WORKER_MEMORY names a file without which it has no memory to load a model.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/build_info.h"
#include "base/liveness_pipe.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "modelfile/model_folder.h"
#include "net/frame_channel.h"
#include "spec/test_product.h"
#include "spec/worker_arguments.h"
#include "wire/messages.h"
#include "wire/shown_models.h"

namespace muster {
namespace {

constexpr int kSocket = 3;

using Orders = std::map<std::string, std::uint32_t>;
struct Models {
  std::map<ModelId, std::uint32_t> dims;  // of what is loaded
  std::uint32_t expect_count = 0;         // since the last batch
  bool is_held = false;                   // it loads nothing before it is told to
  bool is_full = false;                   // nor anything at all
  bool is_without_driver = false;         // it cannot measure
  bool aborts_at_probe = false;           // and does not live on
  ShownModels shown;

  explicit Models(char* argument) : shown(argument) {}
};

Orders read_orders() {
  Orders orders;
  const char* text = std::getenv("ZERO_WORKER");
  for (const auto& word : split(text == nullptr ? "" : text, ' ')) {
    const auto equals = word.find('=');
    std::uint32_t value = 1;
    if (equals != std::string::npos) {
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
    }
    orders[word.substr(0, equals)] = value;
  }
  return orders;
}

Status send(MessageType type, std::uint64_t id, const std::vector<std::byte>& payload) {
  return write_frame(kSocket, static_cast<std::uint8_t>(type), id,
                     std::array<std::span<const std::byte>, 1>{payload});
}

bool is_ordered(const Orders& orders, const std::string& name, const Batch& batch) {
  const auto order = orders.find(name);
  return order != orders.end() &&
         std::find(batch.ids.begin(), batch.ids.end(), order->second) != batch.ids.end();
}

// What a text's row tells in echo mode, as far as it is wide enough.
std::array<std::uint32_t, 5> echo_of(const Batch& batch, std::size_t text,
                                     std::span<const std::uint32_t> ids,
                                     std::uint32_t expect_count) {
  return {std::accumulate(ids.begin(), ids.end(), 0U), batch.lengths[text], batch.model_id,
          batch.first_segments.empty() ? 0 : batch.first_segments[text], expect_count};
}

// NaN for the texts that are to have no finite row.
void spoil_rows(const Orders& orders, const Batch& batch, std::size_t dim,
                std::vector<float>& rows) {
  const auto order = orders.find("nan_on");
  if (order == orders.end()) return;
  std::size_t at = 0;
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    const auto ids = std::span(batch.ids).subspan(at, batch.lengths[i]);
    if (std::find(ids.begin(), ids.end(), order->second) != ids.end()) {
      std::fill_n(rows.data() + i * dim, dim, std::numeric_limits<float>::quiet_NaN());
    }
    at += batch.lengths[i];
  }
}

Status answer(const Orders& orders, Models& models, std::uint64_t id, const Batch& batch) {
  const auto told = std::exchange(models.expect_count, 0);
  const auto expect_count = orders.count("count_expects") > 0 ? told : 0;
  const auto model = models.dims.find(batch.model_id);
  if (model == models.dims.end()) {
    return send(MessageType::Failed, id,
                encode(Failed{{ErrorKind::NotFound, "the model is not loaded"}}));
  }
  if (is_ordered(orders, "abort_on", batch)) std::abort();
  if (is_ordered(orders, "hang_on", batch)) ::raise(SIGSTOP);
  if (is_ordered(orders, "spin_on", batch)) {
    for (volatile bool is_on = true; is_on;) {
    }
  }
  if (is_ordered(orders, "fail_on", batch)) {
    return send(MessageType::Failed, id, encode(Failed{{ErrorKind::Internal, "told to fail"}}));
  }
  const auto oom = orders.find("oom_above");
  const bool is_too_large = oom != orders.end() && batch.ids.size() > oom->second;
  if (is_too_large || is_ordered(orders, "full_on", batch)) {
    return send(MessageType::Failed, id,
                encode(Failed{{ErrorKind::ResourceExhausted, "told to be full"}}));
  }
  const auto dim = model->second;
  std::vector<float> rows(batch.lengths.size() * dim);
  std::size_t at = 0;
  for (std::size_t i = 0; orders.count("echo") > 0 && i < batch.lengths.size(); ++i) {
    const auto echo =
        echo_of(batch, i, std::span(batch.ids).subspan(at, batch.lengths[i]), expect_count);
    std::copy_n(echo.begin(), std::min<std::size_t>(dim, echo.size()), rows.data() + i * dim);
    at += batch.lengths[i];
  }
  spoil_rows(orders, batch, dim, rows);
  const auto head = encode_rows_head({.engine_ns = 1000, .dim = dim, .rows = {}});
  return write_frame(
      kSocket, static_cast<std::uint8_t>(MessageType::Rows), id,
      std::array<std::span<const std::byte>, 2>{head, std::as_bytes(std::span(rows))});
}

Status answer_compute_test(const Orders& orders, const ComputeTest& test) {
  if (orders.count("hang_product") > 0) ::raise(SIGSTOP);
  if (orders.count("fail_product") > 0) {
    return send(MessageType::Failed, 0, encode(Failed{{ErrorKind::Internal, "told to fail"}}));
  }
  const auto lane_count = std::max<std::size_t>(1, test.cpus.size());
  ComputeMeasure measure{.round_seconds = orders.count("slow_product") > 0 ? 60 : 1e-3,
                         .rounds = 2,
                         .lane_count = static_cast<std::uint32_t>(lane_count),
                         .images = {}};
  measure.busy_seconds = measure.round_seconds;
  const TestProduct product{.size = test.size, .seed = test.seed};
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    for (std::uint32_t image = 0; image < TestProduct::kImageCount; ++image) {
      auto values = expected_image(product, image);
      if (orders.count("wrong_product") > 0 && lane == 0) {
        // Entry (5, 7) of C is one too large.
        values[5] += test_vector(product, image)[7];
      }
      measure.images.insert(measure.images.end(), values.begin(), values.end());
    }
  }
  return send(MessageType::ComputeResult, 0, encode(ComputeResult{{std::move(measure)}}));
}

// The size of a model's rows: of a cross-encoder the folder tells.
Result<std::uint32_t> dim_of(const Orders& orders, const ModelRequest& model) {
  if (model.task == ModelTask::Embed) return orders.count("dim") > 0 ? orders.at("dim") : 8;
  const auto folder = MUSTER_TRY(read_model_folder(model.model_folder));
  if (!folder.rerank) return Error{ErrorKind::Unsupported, "no cross-encoder"};
  return folder.rerank->label_count;
}

Status on_load(const Orders& orders, const Load& load, Models& models) {
  const auto hang = orders.find("hang_load");
  if (hang != orders.end() && hang->second == load.model_id) ::raise(SIGSTOP);
  // To open it for reading takes until somebody opens it for writing.
  if (models.is_held) {
    const UniqueFd go(::open("go", O_RDONLY | O_CLOEXEC));
  }
  const char* memory = std::getenv("ZERO_WORKER_MEMORY");
  if (models.is_full || (memory != nullptr && ::access(memory, F_OK) != 0)) {
    const Error error{ErrorKind::ResourceExhausted, "told to be full"};
    return send(MessageType::LoadFailed, 0, encode(LoadFailed{load.model_id, error}));
  }
  const auto failing = orders.find("fail_model");
  const bool is_to_fail = failing != orders.end() && failing->second == load.model_id;
  if (is_to_fail || orders.count("fail_load") > 0) {
    return send(MessageType::LoadFailed, 0,
                encode(LoadFailed{load.model_id, {ErrorKind::Corrupt, "told not to load"}}));
  }
  const auto dim = dim_of(orders, load.model);
  if (!dim) {
    return send(MessageType::LoadFailed, 0, encode(LoadFailed{load.model_id, dim.error()}));
  }
  models.dims[load.model_id] = *dim;
  models.shown.add(load.model_id, load.model.model_folder);
  const auto lane_count = std::max<std::size_t>(1, load.cpus.size());
  return send(MessageType::Ready, 0,
              encode(Ready{.model_id = load.model_id,
                           .dim = *dim,
                           .lane_count = static_cast<std::uint32_t>(lane_count)}));
}

Status on_probe(const Orders& orders, const Models& models) {
  if (models.is_without_driver) {
    const Error error{ErrorKind::Unavailable, "told to have no driver"};
    return send(MessageType::Failed, 0, encode(Failed{error}));
  }
  if (models.aborts_at_probe) std::abort();
  if (orders.count("kill_probe") > 0) ::raise(SIGKILL);
  if (orders.count("hang_probe") > 0) ::raise(SIGSTOP);
  return send(MessageType::Verdict, 0, encode(ProbeVerdict{{{Precision::Fp32, 1000, 1, 1}}}));
}

Status on_frame(const Orders& orders, Models& models, const FrameHeader& header,
                std::span<const std::byte> payload) {
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Probe:
      return on_probe(orders, models);
    case MessageType::Load:
      return on_load(orders, MUSTER_TRY(decode_load(payload)), models);
    case MessageType::Unload: {
      const auto id = MUSTER_TRY(decode_unload(payload)).model_id;
      models.dims.erase(id);
      models.shown.remove(id);
      return Done{};
    }
    case MessageType::Batch:
      return answer(orders, models, header.id, MUSTER_TRY(decode_batch(payload)));
    case MessageType::ComputeTest:
      return answer_compute_test(orders, MUSTER_TRY(decode_compute_test(payload)));
    case MessageType::Expect:
      ++models.expect_count;
      return Done{};
    default:
      return Error{ErrorKind::Corrupt, "unknown message"};
  }
}

std::string claimed_build(const Orders& orders) {
  return orders.count("other_build") > 0 ? "0.0.1 (other)" : std::string(build_name());
}

bool is_on(const Orders& orders, const std::string& name, std::string_view device) {
  const auto order = orders.find(name);
  return order != orders.end() && device == fmt::format("cpu:{}", order->second);
}

std::string class_of(const Orders& orders, std::string_view device) {
  if (is_on(orders, "none_on", device)) return "cuda/none/zero";
  return is_on(orders, "other_on", device) ? "other" : "zero";
}

Status run(std::string_view device, char* models_argument) {
  const auto orders = read_orders();
  if (orders.count("exit_at_start") > 0 || is_on(orders, "exit_on", device)) {
    fmt::print(stderr, "told to exit\n");
    std::exit(3);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (is_on(orders, "stop_on", device)) ::raise(SIGSTOP);
  MUSTER_TRY(send(
      MessageType::Hello, 0,
      encode(Hello{.build = claimed_build(orders), .engine_class = class_of(orders, device)})));
  Models models(models_argument);
  models.is_held = is_on(orders, "hold_on", device);
  models.is_full = is_on(orders, "full_at", device);
  models.is_without_driver = is_on(orders, "none_on", device);
  models.aborts_at_probe = is_on(orders, "abort_probe", device);
  return read_frames(kSocket, [&](const FrameHeader& header, std::span<const std::byte> payload) {
    return on_frame(orders, models, header, payload);
  });
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    fmt::print("muster-worker {}\n", muster::claimed_build(muster::read_orders()));
    return 0;
  }
  std::string_view device;
  char* models = nullptr;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == muster::kWorkerDeviceFlag) device = argv[i + 1];
    if (argv[i] == muster::kWorkerModelsFlag) models = argv[i + 1];
    if (argv[i] == muster::kWorkerLivenessFlag) {
      (void)muster::keep_liveness_pipe(muster::UniqueFd(std::atoi(argv[i + 1])));
    }
  }
  return muster::run(device, models) ? 0 : 1;
}
