#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "modelfile/safetensors.h"

namespace muster::engine {

/// A folder of src/engine/testdata, for tests: a model and what transformers computed with it.
class EncoderFixture {
 public:
  /// Stops the test program where the fixture cannot be read: it is part of the source tree.
  explicit EncoderFixture(const std::string& name, DeviceKind device = DeviceKind::Cpu);

  TextBatch batch() const { return {ids_, lengths_, first_segments_}; }

  /// A tensor of expected.safetensors: "hidden", "cls", "mean", "max", "lasttoken", "normalized";
  /// of a cross-encoder "scores".
  std::vector<float> expected(const std::string& name) const;

  /// How to load the model: mean pooling, or a cross-encoder's scores, in float32 unless
  /// the test changes it.
  EncoderOptions options;

 private:
  std::vector<std::byte> file_;
  SafetensorsHeader header_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> first_segments_;  // of a cross-encoder, else empty
};

/// The device of tests named Gpu...: the stand-in where GPU_TEST_DEVICE is "standin", else CUDA's.
DeviceKind gpu_under_test();

/// Where the real all-MiniLM-L6-v2 is: MUSTER_MINILM, else .deps/models; empty when it is not
/// there.
std::filesystem::path minilm_folder();

/// The largest difference of two vectors of one size.
float max_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace muster::engine
