#include "worker/worker.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/frame_channel.h"
#include "worker/probe.h"

namespace muster {
namespace {

std::string fixture(const std::string& name) {
  return std::string(MUSTER_SOURCE_DIR) + "/src/engine/testdata/" + name;
}

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;

  MessageType type() const { return static_cast<MessageType>(header.type); }
};

// A worker on a thread of its own, spoken to over its socket.
class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    channel_ = std::make_unique<FrameChannel>(UniqueFd(ends[0]));
    thread_ = std::jthread([this, end = ends[1]] {
      Worker worker(UniqueFd(end), DeviceKind::Cpu);
      outcome_ = worker.run();
    });
    EXPECT_EQ(next().type(), MessageType::Hello);
  }

  // Closes the socket and waits for the worker's end.
  Status end() {
    channel_->close();
    thread_.join();
    return outcome_;
  }

  template <typename Message>
  void say(MessageType type, const Message& message, std::uint64_t id = 0) {
    ASSERT_TRUE(channel_->send(static_cast<std::uint8_t>(type), id, encode(message)));
  }

  // The next frame that the worker sends; a minute at most.
  Frame next() {
    while (frames_.empty()) {
      pollfd waiting{channel_->fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 60'000) != 1) {
        ADD_FAILURE() << "the worker is silent";
        return {};
      }
      const auto more = channel_->read_available(
          [this](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
            frames_.push_back({header, {payload.begin(), payload.end()}});
            return Done{};
          });
      if (!more || (!*more && frames_.empty())) return {};  // the worker's end
    }
    auto frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

  Ready load(ModelId id, const ModelRequest& model) {
    say(MessageType::Load, Load{.model_id = id, .model = model, .cpus = {}});
    const auto answer = next();
    EXPECT_EQ(answer.type(), MessageType::Ready);
    const auto ready = decode_ready(answer.payload);
    return ready ? *ready : Ready{};
  }

  std::jthread thread_;
  Status outcome_ = Done{};
  std::unique_ptr<FrameChannel> channel_;
  std::deque<Frame> frames_;
};

const Batch kTexts{.lengths = {3, 2}, .ids = {5, 6, 7, 8, 9}, .first_segments = {2, 0}};

Batch texts_for(ModelId id) {
  auto batch = kTexts;
  batch.model_id = id;
  return batch;
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What the engine gives in this process, without a worker.
std::vector<float> rows_of(const ModelRequest& model) {
  engine::enter_lane();
  const auto encoder = engine::Encoder::load(*encoder_options(model, Precision::Fp32));
  EXPECT_TRUE(encoder) << encoder.error().message;
  std::vector<float> rows(kTexts.lengths.size() * (*encoder)->dim());
  EXPECT_TRUE((*encoder)->encode({kTexts.ids, kTexts.lengths, kTexts.first_segments}, rows));
  return rows;
}

TEST_F(WorkerTest, ServesAnEncoderAndACrossEncoderSideBySide) {
  const ModelRequest vectors{.model_folder = fixture("bert")};
  const ModelRequest scores{.model_folder = fixture("bert_cross"), .task = ModelTask::Rerank};
  const auto first = load(1, vectors);
  EXPECT_EQ(first.model_id, 1U);
  EXPECT_EQ(first.dim, 64U);
  EXPECT_GT(first.weights_bytes, 0U);
  const auto second = load(2, scores);
  EXPECT_EQ(second.model_id, 2U);
  EXPECT_EQ(second.dim, 1U);

  for (const auto& [id, request] : {std::pair(1U, vectors), std::pair(2U, scores)}) {
    SCOPED_TRACE(id);
    say(MessageType::Batch, texts_for(id), 40 + id);
    const auto answer = next();
    ASSERT_EQ(answer.type(), MessageType::Rows);
    EXPECT_EQ(answer.header.id, 40 + id);
    const auto rows = decode_rows(answer.payload);
    ASSERT_TRUE(rows);
    EXPECT_EQ(floats_of(rows->rows), rows_of(request));
  }
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, MeasuresADecoderOrSaysWhyNot) {
  ProbeDecoder probe{.source = fixture("decoders/llama"),
                     .precisions = {DecoderPrecision::Fp32, DecoderPrecision::Bf16},
                     .lengths = {3},
                     .ids = {5, 6, 7}};
  say(MessageType::ProbeDecoder, probe);
  const auto answer = next();
  ASSERT_EQ(answer.type(), MessageType::DecoderVerdict);
  const auto verdict = decode_decoder_verdict(answer.payload);
  ASSERT_TRUE(verdict) << verdict.error().message;
  ASSERT_EQ(verdict->measures.size(), 2U);
  EXPECT_EQ(verdict->measures[1].precision, DecoderPrecision::Bf16);
  EXPECT_GT(verdict->measures[1].tokens_per_second, 0);
  probe.source = fixture("none");
  say(MessageType::ProbeDecoder, probe);
  EXPECT_EQ(next().type(), MessageType::Failed) << "and the worker lives on";
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, AnExpectedBatchIsAnsweredWheneverItComes) {
  const ModelRequest model{.model_folder = fixture("bert")};
  load(1, model);
  const auto expect = [this] {
    ASSERT_TRUE(channel_->send(static_cast<std::uint8_t>(MessageType::Expect), 0, {}));
  };
  expect();
  say(MessageType::Batch, texts_for(1), 7);
  const auto answer = next();
  EXPECT_EQ(answer.header.id, 7U);
  const auto rows = decode_rows(answer.payload);
  ASSERT_TRUE(rows);
  EXPECT_EQ(floats_of(rows->rows), rows_of(model));
  expect();
  expect();
  // The thread that waits for the batch hears the rest.
  EXPECT_EQ(load(2, {.model_folder = fixture("roberta")}).model_id, 2U);
  say(MessageType::Batch, texts_for(2), 8);
  EXPECT_EQ(next().header.id, 8U);
  // One that is too large for the thread that reads is the lane's.
  expect();
  Batch large{.model_id = 1, .lengths = {}, .ids = {}, .first_segments = {}};
  for (std::uint32_t i = 0; i < 300; ++i) {
    large.lengths.push_back(2);
    large.ids.insert(large.ids.end(), {2, 3});
  }
  say(MessageType::Batch, large, 9);
  EXPECT_EQ(next().header.id, 9U);
  expect();
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, SeveralLanesAnswerEveryBatchWithTheBitsOfOne) {
  const ModelRequest model{.model_folder = fixture("bert")};
  say(MessageType::Load, Load{.model_id = 1, .model = model, .cpus = {0, 1}});
  const auto ready = decode_ready(next().payload);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->lane_count, 2U);
  const auto expected = rows_of(model);
  std::map<std::uint64_t, std::vector<float>> answers;
  for (std::uint64_t id = 1; id <= 4; ++id) say(MessageType::Batch, texts_for(1), id);
  for (int i = 0; i < 4; ++i) {
    const auto answer = next();
    ASSERT_EQ(answer.type(), MessageType::Rows);
    const auto rows = decode_rows(answer.payload);
    ASSERT_TRUE(rows);
    EXPECT_GT(rows->engine_ns, 0U);
    answers[answer.header.id] = floats_of(rows->rows);
  }
  EXPECT_EQ(answers.size(), 4U);
  for (const auto& [id, rows] : answers) EXPECT_EQ(rows, expected) << id;
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, ABatchOfAModelThatIsNotLoadedFailsAlone) {
  say(MessageType::Batch, texts_for(1), 7);
  const auto answer = next();
  ASSERT_EQ(answer.type(), MessageType::Failed);
  EXPECT_EQ(answer.header.id, 7U);
  const auto failed = decode_failed(answer.payload);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error.kind, ErrorKind::NotFound);
  EXPECT_EQ(failed->error.message, "the model is not loaded: 1");
  EXPECT_EQ(load(1, {.model_folder = fixture("bert")}).dim, 64U);
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, UnloadingAnswersWhatCameBefore) {
  load(1, {.model_folder = fixture("bert")});
  load(2, {.model_folder = fixture("roberta")});
  for (std::uint64_t id = 1; id <= 2; ++id) say(MessageType::Batch, texts_for(1), id);
  say(MessageType::Unload, Unload{.model_id = 1});
  say(MessageType::Batch, texts_for(1), 3);
  say(MessageType::Batch, texts_for(2), 4);
  std::map<std::uint64_t, MessageType> answers;
  for (int i = 0; i < 4; ++i) {
    const auto frame = next();
    answers[frame.header.id] = frame.type();
  }
  const std::map<std::uint64_t, MessageType> expected{{1, MessageType::Rows},
                                                      {2, MessageType::Rows},
                                                      {3, MessageType::Failed},
                                                      {4, MessageType::Rows}};
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(load(3, {.model_folder = fixture("bert")}).dim, 64U);
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, AModelThatCannotBeLoadedLeavesTheOthersAlone) {
  load(1, {.model_folder = fixture("bert")});
  const auto error_of = [this](ModelId id, const ModelRequest& model) {
    say(MessageType::Load, Load{.model_id = id, .model = model, .cpus = {}});
    const auto answer = next();
    EXPECT_EQ(answer.type(), MessageType::LoadFailed);
    const auto failed = decode_load_failed(answer.payload);
    EXPECT_EQ(failed->model_id, id);
    return failed->error;
  };
  EXPECT_EQ(error_of(2, {.model_folder = "/nowhere"}).kind, ErrorKind::NotFound);
  const auto no_head =
      error_of(3, {.model_folder = fixture("bert"), .task = ModelTask::Rerank}).message;
  EXPECT_EQ(no_head, fixture("bert") +
                         ": no cross-encoder: config.json's architectures name no "
                         "...ForSequenceClassification");
  // The same id may be tried again.
  EXPECT_EQ(error_of(2, {.model_folder = "/nowhere"}).kind, ErrorKind::NotFound);
  say(MessageType::Batch, texts_for(1), 1);
  EXPECT_EQ(next().type(), MessageType::Rows);
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, AModelIsAskedForOnce) {
  load(1, {.model_folder = fixture("bert")});
  say(MessageType::Load,
      Load{.model_id = 1, .model = {.model_folder = fixture("bert")}, .cpus = {}});
  next();  // the end of the stream
  const auto outcome = end();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the model was asked for twice: 1");
}

}  // namespace
}  // namespace muster
