#include "wire/messages.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Messages, HelloComesBackAsItWent) {
  const auto back = decode_hello(encode(Hello{.build = "0.1.0 abc", .engine_class = "cpu/avx512"}));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->protocol, Hello::kProtocol);
  EXPECT_EQ(back->build, "0.1.0 abc");
  EXPECT_EQ(back->engine_class, "cpu/avx512");
}

TEST(Messages, ProbeComesBackAsItWent) {
  const Probe probe{.model = {.model_folder = "/m",
                              .device = DeviceKind::Cuda,
                              .pooling = Pooling::Max,
                              .normalize = true,
                              .task = ModelTask::Rerank},
                    .cpus = {1},
                    .lengths = {2, 1},
                    .ids = {5, 6, 7}};
  const auto back = decode_probe(encode(probe));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->model.model_folder, "/m");
  EXPECT_EQ(back->model.device, DeviceKind::Cuda);
  EXPECT_EQ(back->model.pooling, Pooling::Max);
  EXPECT_TRUE(back->model.normalize);
  EXPECT_EQ(back->model.task, ModelTask::Rerank);
  EXPECT_EQ(back->cpus, probe.cpus);
  EXPECT_EQ(back->lengths, probe.lengths);
  EXPECT_EQ(back->ids, probe.ids);
}

TEST(Messages, LoadReadyAndVerdictComeBackAsTheyWent) {
  const auto load = decode_load(encode(Load{.model_id = 7,
                                            .model = {.model_folder = "m"},
                                            .precision = Precision::Bf16,
                                            .cpus = {0, 3}}));
  ASSERT_TRUE(load);
  EXPECT_EQ(load->model_id, 7U);
  EXPECT_EQ(load->precision, Precision::Bf16);
  EXPECT_EQ(load->cpus, (std::vector<std::uint32_t>{0, 3}));

  const auto ready = decode_ready(encode(
      Ready{.model_id = 9, .dim = 384, .lane_count = 2, .weights_bytes = 7, .load_peak_bytes = 6}));
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->model_id, 9U);
  EXPECT_EQ(ready->dim, 384U);
  EXPECT_EQ(ready->lane_count, 2U);
  EXPECT_EQ(ready->weights_bytes, 7U);
  EXPECT_EQ(ready->load_peak_bytes, 6U);

  const auto verdict =
      decode_verdict(encode(ProbeVerdict{{{Precision::Bf16, 123.5, 0.9999, 0.999}}}));
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->measures.size(), 1U);
  EXPECT_EQ(verdict->measures[0].precision, Precision::Bf16);
  EXPECT_EQ(verdict->measures[0].tokens_per_second, 123.5);
  EXPECT_EQ(verdict->measures[0].cosine_min, 0.999);
}

TEST(Messages, FailedCarriesTheErrorUnchanged) {
  const auto back =
      decode_failed(encode(Failed{{ErrorKind::ResourceExhausted, "the machine is out of memory"}}));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(back->error.message, "the machine is out of memory");
}

TEST(Messages, UnloadAndLoadFailedNameTheirModel) {
  const auto unload = decode_unload(encode(Unload{.model_id = 3}));
  ASSERT_TRUE(unload);
  EXPECT_EQ(unload->model_id, 3U);

  const auto failed = decode_load_failed(
      encode(LoadFailed{.model_id = 4, .error = {ErrorKind::NotFound, "no such model folder"}}));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->model_id, 4U);
  EXPECT_EQ(failed->error.kind, ErrorKind::NotFound);
  EXPECT_EQ(failed->error.message, "no such model folder");
}

TEST(Messages, ABatchOfPairsComesBackAsItWent) {
  const Batch batch{
      .model_id = 5, .lengths = {3, 2}, .ids = {1, 2, 3, 4, 5}, .first_segments = {2, 0}};
  const auto back = decode_batch(encode(batch));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->model_id, 5U);
  EXPECT_EQ(back->lengths, batch.lengths);
  EXPECT_EQ(back->ids, batch.ids);
  EXPECT_EQ(back->first_segments, batch.first_segments);
}

TEST(Messages, SegmentsThatDoNotFitTheTextsAreCorrupt) {
  const auto message_of = [](std::vector<std::uint32_t> first_segments) {
    const auto batch = decode_batch(encode(
        Batch{.lengths = {2, 1}, .ids = {1, 2, 3}, .first_segments = std::move(first_segments)}));
    return batch ? "no error" : batch.error().message;
  };
  EXPECT_EQ(message_of({2}), "segments are not one for each text: 1 and 2");
  EXPECT_EQ(message_of({2, 2}), "a segment is longer than its text: 2 and 1");
  EXPECT_EQ(message_of({2, 1}), "no error");
}

TEST(Messages, AComputeTestAndItsResultComeBackAsTheyWent) {
  const auto test = decode_compute_test(encode(ComputeTest{
      .device = DeviceKind::Cuda, .cpus = {1, 2}, .size = 64, .seed = 9, .time_ms = 500}));
  ASSERT_TRUE(test);
  EXPECT_EQ(test->device, DeviceKind::Cuda);
  EXPECT_EQ(test->cpus, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(test->size, 64U);
  EXPECT_EQ(test->seed, 9U);
  EXPECT_EQ(test->time_ms, 500U);

  const auto result = decode_compute_result(encode(ComputeResult{{{.precision = Precision::Bf16,
                                                                   .round_seconds = 0.5,
                                                                   .busy_seconds = 0.25,
                                                                   .rounds = 3,
                                                                   .lane_count = 2,
                                                                   .images = {1, -2}}}}));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->measures.size(), 1U);
  EXPECT_EQ(result->measures[0].precision, Precision::Bf16);
  EXPECT_EQ(result->measures[0].round_seconds, 0.5);
  EXPECT_EQ(result->measures[0].busy_seconds, 0.25);
  EXPECT_EQ(result->measures[0].rounds, 3U);
  EXPECT_EQ(result->measures[0].lane_count, 2U);
  EXPECT_EQ(result->measures[0].images, (std::vector<double>{1, -2}));
}

TEST(Messages, AComputeTestOfASizeThatNoProductHasIsCorrupt) {
  const auto test = decode_compute_test(encode(ComputeTest{.size = 33}));
  ASSERT_FALSE(test);
  EXPECT_EQ(test.error().message, "no size of a test product: 33");
  EXPECT_FALSE(decode_compute_test(encode(ComputeTest{.size = 0})));
  EXPECT_FALSE(decode_compute_test(encode(ComputeTest{.size = 16384})));
}

TEST(Messages, RowsAreTheBytesAfterTheHead) {
  auto payload = encode_rows_head(
      Rows{.engine_ns = 9, .activation_peak_bytes = 5, .is_cut = true, .dim = 2, .rows = {}});
  payload.resize(payload.size() + 16);  // two rows of two float32
  const auto rows = decode_rows(payload);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->engine_ns, 9U);
  EXPECT_EQ(rows->activation_peak_bytes, 5U);
  EXPECT_TRUE(rows->is_cut);
  EXPECT_EQ(rows->rows.size(), 16U);
  payload.resize(payload.size() - 4);
  EXPECT_EQ(decode_rows(payload).error().kind, ErrorKind::Corrupt);
}

TEST(Messages, ABatchWhoseLengthsDoNotSumIsCorrupt) {
  const auto batch = decode_batch(encode(Batch{.lengths = {2, 2}, .ids = {1, 2, 3}}));
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message, "lengths do not sum to the ids: 4 and 3");
}

TEST(Messages, EveryCutOfAPayloadIsCorrupt) {
  const auto whole =
      encode(Probe{.model = {.model_folder = "/m"}, .cpus = {1}, .lengths = {1}, .ids = {5}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const auto cut = decode_probe(std::span(whole).first(size));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().kind, ErrorKind::Corrupt);
  }
}

TEST(Messages, AnUnknownEnumeratorIsCorrupt) {
  auto payload = encode(Failed{{ErrorKind::Internal, ""}});
  payload[0] = std::byte{200};
  EXPECT_EQ(decode_failed(payload).error().message, "message has an unknown error kind: 200");
}

}  // namespace
}  // namespace muster
