// Encoders and decoders of what parent and worker say to each other, in pairs: the order of fields
// in a pair is the format, and nothing else states it in code. A decoder checks everything that
// later code relies on (lengths that add up, kinds that exist), because a worker that has gone
// wrong may send anything. A payload must end where its message ends: bytes that are left over mean
// that the two sides disagree about the format. Source: docs/formats/frames.md.

#include "wire/messages.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "spec/test_product.h"
#include "wire/bytes.h"

namespace muster {
namespace {

// Any number but 0 is true: a flag has no value that could do harm.
Result<bool> read_bool(ByteReader& reader) {
  return MUSTER_TRY(reader.number<std::uint8_t>()) != 0;
}

// Shared by Probe and Load, so that a model is measured as it will be run.
void write_model(ByteWriter& writer, const ModelRequest& model) {
  writer.text(model.model_folder);
  writer.number(model.device);
  writer.number(model.pooling);
  writer.number(static_cast<std::uint8_t>(model.normalize));
  writer.number(model.task);
}

Result<ModelRequest> read_model(ByteReader& reader) {
  ModelRequest model;
  model.model_folder = MUSTER_TRY(reader.text());
  model.device = MUSTER_TRY(reader.enumerator(kDeviceKindLast, "device kind"));
  model.pooling = MUSTER_TRY(reader.enumerator(Pooling::Last, "pooling"));
  model.normalize = MUSTER_TRY(read_bool(reader));
  model.task = MUSTER_TRY(reader.enumerator(ModelTask::Rerank, "model task"));
  return model;
}

// The sum is taken in 64 bits: lengths of 32 bits could wrap to the right number of ids.
Status check_lengths(const std::vector<std::uint32_t>& lengths,
                     const std::vector<std::uint32_t>& ids) {
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  if (sum != ids.size()) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("lengths do not sum to the ids: {} and {}", sum, ids.size())};
  }
  return Done{};
}

// No list at all is the common case and costs four bytes.
Status check_segments(const Batch& batch) {
  if (batch.first_segments.empty()) return Done{};
  if (batch.first_segments.size() != batch.lengths.size()) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("segments are not one for each text: {} and {}",
                             batch.first_segments.size(), batch.lengths.size())};
  }
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    if (batch.first_segments[i] > batch.lengths[i]) {
      return Error{ErrorKind::Corrupt, fmt::format("a segment is longer than its text: {} and {}",
                                                   batch.first_segments[i], batch.lengths[i])};
    }
  }
  return Done{};
}

// An error crosses the wire whole, kind and message, and is reported as if it had happened here.
void write_error(ByteWriter& writer, const Error& error) {
  writer.number(error.kind);
  writer.text(error.message);
}

// Without a check of the end: LoadFailed has the same fields behind its own.
Result<Failed> read_failed(ByteReader& reader) {
  Failed failed;
  failed.error.kind = MUSTER_TRY(reader.enumerator(ErrorKind::Internal, "error kind"));
  failed.error.message = MUSTER_TRY(reader.text());
  return failed;
}

}  // namespace

// The first message of all, so its first field must stay what it is: by it the other side learns
// whether it can understand the rest.
std::vector<std::byte> encode(const Hello& message) {
  ByteWriter writer;
  writer.number(message.protocol);
  writer.text(message.build);
  writer.text(message.engine_class);
  return writer.take();
}

Result<Hello> decode_hello(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Hello message;
  message.protocol = MUSTER_TRY(reader.number<std::uint32_t>());
  message.build = MUSTER_TRY(reader.text());
  message.engine_class = MUSTER_TRY(reader.text());
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Probe& message) {
  ByteWriter writer;
  write_model(writer, message.model);
  writer.numbers<std::uint32_t>(message.cpus);
  writer.numbers<std::uint32_t>(message.lengths);
  writer.numbers<std::uint32_t>(message.ids);
  return writer.take();
}

Result<Probe> decode_probe(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Probe message;
  message.model = MUSTER_TRY(read_model(reader));
  message.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.lengths = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.ids = MUSTER_TRY(reader.numbers<std::uint32_t>());
  MUSTER_TRY(reader.end());
  MUSTER_TRY(check_lengths(message.lengths, message.ids));
  return message;
}

std::vector<std::byte> encode(const ProbeVerdict& message) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(message.measures.size()));
  for (const auto& measure : message.measures) {
    writer.number(measure.precision);
    writer.number(measure.tokens_per_second);
    writer.number(measure.cosine_mean);
    writer.number(measure.cosine_min);
  }
  return writer.take();
}

// A verdict without a measure is legal on the wire; what to run then is the parent's decision.
Result<ProbeVerdict> decode_verdict(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  ProbeVerdict message;
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    PrecisionMeasure measure;
    measure.precision = MUSTER_TRY(reader.enumerator(Precision::Int8, "precision"));
    measure.tokens_per_second = MUSTER_TRY(reader.number<double>());
    measure.cosine_mean = MUSTER_TRY(reader.number<double>());
    measure.cosine_min = MUSTER_TRY(reader.number<double>());
    message.measures.push_back(measure);
  }
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Load& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  write_model(writer, message.model);
  writer.number(message.precision);
  writer.numbers<std::uint32_t>(message.cpus);
  return writer.take();
}

// Whether the folder holds a model is found when it is loaded, and answered by LoadFailed.
Result<Load> decode_load(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Load message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.model = MUSTER_TRY(read_model(reader));
  message.precision = MUSTER_TRY(reader.enumerator(Precision::Int8, "precision"));
  message.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Ready& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  writer.number(message.dim);
  writer.number(message.lane_count);
  writer.number(message.weights_bytes);
  writer.number(message.load_peak_bytes);
  return writer.take();
}

// The parent divides by the dimension and deals by lanes: zeros are refused here.
Result<Ready> decode_ready(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Ready message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.dim = MUSTER_TRY(reader.number<std::uint32_t>());
  message.lane_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.weights_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  message.load_peak_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  MUSTER_TRY(reader.end());
  if (message.dim == 0 || message.lane_count == 0) {
    return Error{ErrorKind::Corrupt, "a worker without dimension or lanes says it is ready"};
  }
  return message;
}

std::vector<std::byte> encode(const LoadFailed& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  write_error(writer, message.error);
  return writer.take();
}

Result<LoadFailed> decode_load_failed(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  LoadFailed message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.error = MUSTER_TRY(read_failed(reader)).error;
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Unload& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  return writer.take();
}

Result<Unload> decode_unload(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Unload message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  MUSTER_TRY(reader.end());
  return message;
}

// The large message of everyday work; its size is known, so memory is taken once.
std::vector<std::byte> encode(const Batch& message) {
  const auto numbers =
      message.lengths.size() + message.ids.size() + message.first_segments.size() + 4;
  ByteWriter writer;
  writer.expect(numbers * sizeof(std::uint32_t));
  writer.number(message.model_id);
  writer.numbers<std::uint32_t>(message.lengths);
  writer.numbers<std::uint32_t>(message.ids);
  writer.numbers<std::uint32_t>(message.first_segments);
  return writer.take();
}

Result<Batch> decode_batch(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Batch message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.lengths = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.ids = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.first_segments = MUSTER_TRY(reader.numbers<std::uint32_t>());
  MUSTER_TRY(reader.end());
  MUSTER_TRY(check_lengths(message.lengths, message.ids));
  MUSTER_TRY(check_segments(message));
  return message;
}

// The head alone: the rows are sent from where they were computed, without a copy into a payload.
// What tells a cut is as wide as a float, so that the rows behind it stay aligned.
std::vector<std::byte> encode_rows_head(const Rows& message) {
  ByteWriter writer;
  writer.number(message.engine_ns);
  writer.number(message.activation_peak_bytes);
  writer.number(std::uint32_t{message.is_cut ? 1U : 0U});
  writer.number(message.dim);
  return writer.take();
}

// Rows stay in the payload and are only pointed at, so they live as long as it does. Whether they
// are as many as the batch has texts is for the caller to say, who knows the batch.
Result<Rows> decode_rows(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Rows message;
  message.engine_ns = MUSTER_TRY(reader.number<std::uint64_t>());
  message.activation_peak_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  message.is_cut = MUSTER_TRY(reader.number<std::uint32_t>()) != 0;
  message.dim = MUSTER_TRY(reader.number<std::uint32_t>());
  message.rows = reader.rest();
  if (message.dim == 0 || message.rows.size() % (std::size_t{message.dim} * sizeof(float)) != 0) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("rows are no multiple of the dimension: {} bytes, {}",
                             message.rows.size(), message.dim)};
  }
  return message;
}

std::vector<std::byte> encode(const Failed& message) {
  ByteWriter writer;
  write_error(writer, message.error);
  return writer.take();
}

Result<Failed> decode_failed(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  auto message = MUSTER_TRY(read_failed(reader));
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const ComputeTest& message) {
  ByteWriter writer;
  writer.number(message.device);
  writer.numbers<std::uint32_t>(message.cpus);
  writer.number(message.size);
  writer.number(message.seed);
  writer.number(message.time_ms);
  return writer.take();
}

// A size beyond the bounds would take memory before anybody could refuse it.
Result<ComputeTest> decode_compute_test(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  ComputeTest message;
  message.device = MUSTER_TRY(reader.enumerator(kDeviceKindLast, "device kind"));
  message.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.size = MUSTER_TRY(reader.number<std::uint32_t>());
  message.seed = MUSTER_TRY(reader.number<std::uint64_t>());
  message.time_ms = MUSTER_TRY(reader.number<std::uint32_t>());
  MUSTER_TRY(reader.end());
  if (message.size == 0 || message.size % TestProduct::kSizeStep != 0 ||
      message.size > TestProduct::kSizeMax) {
    return Error{ErrorKind::Corrupt, fmt::format("no size of a test product: {}", message.size)};
  }
  return message;
}

std::vector<std::byte> encode(const ComputeResult& message) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(message.measures.size()));
  for (const auto& measure : message.measures) {
    writer.number(measure.precision);
    writer.number(measure.round_seconds);
    writer.number(measure.busy_seconds);
    writer.number(measure.rounds);
    writer.number(measure.lane_count);
    writer.numbers<double>(measure.images);
  }
  return writer.take();
}

// What the numbers mean is judged by the parent: here they need only be there.
Result<ComputeResult> decode_compute_result(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  ComputeResult message;
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    ComputeMeasure measure;
    measure.precision = MUSTER_TRY(reader.enumerator(Precision::Int8, "precision"));
    measure.round_seconds = MUSTER_TRY(reader.number<double>());
    measure.busy_seconds = MUSTER_TRY(reader.number<double>());
    measure.rounds = MUSTER_TRY(reader.number<std::uint32_t>());
    measure.lane_count = MUSTER_TRY(reader.number<std::uint32_t>());
    measure.images = MUSTER_TRY(reader.numbers<double>());
    message.measures.push_back(std::move(measure));
  }
  MUSTER_TRY(reader.end());
  return message;
}

}  // namespace muster
