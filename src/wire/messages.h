#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "spec/device.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"
#include "spec/serving.h"

namespace muster {

/// What parent and worker say to each other; the payload of each is the struct of the same name.
/// A worker says Hello; the parent may ask Probe; it says Load, for each model once; the worker
/// answers Ready or LoadFailed, and from then on gets a Batch of that model for every free slot and
/// answers Rows or Failed, until Unload; Expect announces a batch to an idle worker. Instead of all
/// that it may be asked for a ComputeTest, once. The end of the stream is the end of the worker.
/// Source: docs/formats/frames.md.
enum class MessageType : std::uint8_t {
  Hello = 1,
  Probe = 2,
  Verdict = 3,
  Load = 4,
  Ready = 5,
  Batch = 6,
  Rows = 7,
  Failed = 8,
  ComputeTest = 9,
  ComputeResult = 10,
  Unload = 11,
  LoadFailed = 12,
  Expect = 13,
  LoadDecoder = 14,  // from here on: generation_messages.h
  DecoderReady = 15,
  Generate = 16,
  Tokens = 17,
  Cancel = 18,  // parent: the sequence of the frame's id is not wanted any more; without a payload
  Finished = 19,
  StepBegun = 20,
  ProbeDecoder = 21,
  DecoderVerdict = 22,
  CacheUse = 23,
};

/// How long a worker polls for a batch after Expect. From there to the batch a parent takes 0.1 to
/// 0.2 ms on a virtual machine whose caches are cold.
inline constexpr Duration kExpectTime = std::chrono::microseconds(500);

/// Worker: who speaks. Both sides refuse another protocol or build.
struct Hello {
  static constexpr std::uint32_t kProtocol = 13;
  std::uint32_t protocol = kProtocol;
  std::string build;  // the version and commit both programs were built from
  std::string
      engine_class;  // what of machine and library can change a bit; part of the equality class
};

/// Which model, and what is done with its token rows.
struct ModelRequest {
  std::string model_folder;
  DeviceKind device = DeviceKind::Cpu;
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  ModelTask task = ModelTask::Embed;  // Rerank: pooling and normalize are the head's own affair
};

/// Parent: measure every precision that this device may use, on these texts.
struct Probe {
  ModelRequest model;
  std::vector<std::uint32_t> cpus;     // where to run; empty: anywhere
  std::vector<std::uint32_t> lengths;  // [texts]
  std::vector<std::uint32_t> ids;      // [sum of lengths]
};

/// One precision as measured by a Probe.
struct PrecisionMeasure {
  Precision precision = Precision::Fp32;
  double tokens_per_second = 0;  // of one lane, median of the rounds
  double cosine_mean = 0;        // to fp32, over the texts
  double cosine_min = 0;
};

/// Worker: the answer to Probe.
struct ProbeVerdict {
  std::vector<PrecisionMeasure> measures;  // fp32 first
};

/// Parent: load this beside what is loaded, and be ready for batches of it.
struct Load {
  ModelId model_id = 0;  // never used before in this worker
  ModelRequest model;
  Precision precision = Precision::Fp32;
  std::vector<std::uint32_t> cpus;  // a lane each, the same for all models; empty for a GPU: one
};

/// Worker: loaded; it takes two batches a lane, one running and one waiting, of all models
/// together.
struct Ready {
  ModelId model_id = 0;
  std::uint32_t dim = 0;  // of a row: of a vector, or how many scores a pair has
  std::uint32_t lane_count = 0;
  std::uint64_t weights_bytes = 0;    // 0: not counted on this kind of device
  std::uint64_t load_peak_bytes = 0;  // the most that loading held beside them
};

/// Worker: this Load could not be done; the worker lives on.
struct LoadFailed {
  ModelId model_id = 0;
  Error error{ErrorKind::Internal, ""};
};

/// Parent: forget this model and free its memory once the batches that came before are answered.
/// Not answered.
struct Unload {
  ModelId model_id = 0;
};

/// Parent: embed or score these. The frame's id is the batch's. One of a model that is not loaded
/// is answered Failed with NotFound.
struct Batch {
  ModelId model_id = 0;
  std::vector<std::uint32_t> lengths;  // [texts]
  std::vector<std::uint32_t> ids;      // [sum of lengths]
  /// [texts], or empty: how many of a text's first ids are of segment 0, the rest being of segment
  /// 1; 0, or no list: all are.
  std::vector<std::uint32_t> first_segments = {};
};

/// Worker: the vectors or scores of a batch, decoded in place.
struct Rows {
  std::uint64_t engine_ns = 0;  // time inside the engine, of all lanes that took part together
  std::uint64_t activation_peak_bytes =
      0;  // the most that all lanes held beside the weights, so far; 0: not counted
  /// A GPU's memory was short: it took smaller passes, and so longer.
  bool is_cut = false;
  std::uint32_t dim = 0;
  std::span<const std::byte> rows;  // [texts, dim] float32
};

/// Worker: the batch, or the Probe or ComputeTest (id 0), could not be done; the worker lives on.
struct Failed {
  Error error{ErrorKind::Internal, ""};
};

/// Parent: multiply matrices on the device and tell how fast, and what came of it.
struct ComputeTest {
  DeviceKind device = DeviceKind::Cpu;
  std::vector<std::uint32_t> cpus = {};  // a lane each; empty for a GPU: one lane
  std::uint32_t size = 0;                // of the matrices; spec/test_product.h
  std::uint64_t seed = 0;
  std::uint32_t time_ms = 0;  // for the rounds of each precision
};

/// One precision of a ComputeTest.
struct ComputeMeasure {
  Precision precision = Precision::Fp32;
  double round_seconds = 0;  // the best round: each lane made one product at the same time
  double busy_seconds = 0;   // CPU: processor time of a lane in that round, in the mean; 0: no CPU
  std::uint32_t rounds = 0;
  std::uint32_t lane_count = 0;
  std::vector<double> images =
      {};  // [lanes, TestProduct::kImageCount, size]: C x of each lane's last C
};

/// Worker: the answer to ComputeTest.
struct ComputeResult {
  std::vector<ComputeMeasure> measures;  // of every precision the device may use, fp32 first
};

std::vector<std::byte> encode(const Hello& message);
std::vector<std::byte> encode(const Probe& message);
std::vector<std::byte> encode(const ProbeVerdict& message);
std::vector<std::byte> encode(const Load& message);
std::vector<std::byte> encode(const Ready& message);
std::vector<std::byte> encode(const LoadFailed& message);
std::vector<std::byte> encode(const Unload& message);
std::vector<std::byte> encode(const Batch& message);
std::vector<std::byte> encode(const Failed& message);
std::vector<std::byte> encode(const ComputeTest& message);
std::vector<std::byte> encode(const ComputeResult& message);

/// The head of a Rows payload; the row bytes follow it.
std::vector<std::byte> encode_rows_head(const Rows& message);

/// Errors of all: Corrupt for a payload that ends early or late or holds an unknown enumerator,
/// lengths that do not sum to the ids, segments that do not fit the lengths, rows that are no
/// multiple of the dim, or a test whose size is none that a TestProduct may have.
Result<Hello> decode_hello(std::span<const std::byte> payload);
Result<Probe> decode_probe(std::span<const std::byte> payload);
Result<ProbeVerdict> decode_verdict(std::span<const std::byte> payload);
Result<Load> decode_load(std::span<const std::byte> payload);
Result<Ready> decode_ready(std::span<const std::byte> payload);
Result<LoadFailed> decode_load_failed(std::span<const std::byte> payload);
Result<Unload> decode_unload(std::span<const std::byte> payload);
Result<Batch> decode_batch(std::span<const std::byte> payload);
Result<Rows> decode_rows(std::span<const std::byte> payload);
Result<Failed> decode_failed(std::span<const std::byte> payload);
Result<ComputeTest> decode_compute_test(std::span<const std::byte> payload);
Result<ComputeResult> decode_compute_result(std::span<const std::byte> payload);

}  // namespace muster
