#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace muster::standin {

/// Opens libmuster-standin.so as the engine does, and makes tensors on it.
class StandinTest : public testing::Test {
 protected:
  static constexpr auto kType = c10::DeviceType::PrivateUse1;

  static void SetUpTestSuite();

  static c10::Device device(int index = 0) { return {kType, static_cast<c10::DeviceIndex>(index)}; }

  static c10::impl::VirtualGuardImpl guard() { return {kType}; }

  static void wait() { guard().synchronizeStream(guard().getStream(device())); }

  /// A stream that no other test has, as the current one of this thread.
  static c10::Stream take_stream() {
    const auto stream = guard().getStreamFromGlobalPool(device(), false);
    guard().exchangeStream(stream);
    return stream;
  }

  static at::Tensor pinned(c10::IntArrayRef size, c10::ScalarType type = c10::kFloat) {
    return at::empty(size, at::TensorOptions().dtype(type).pinned_memory(true));
  }

  /// Values in -1..1 of a fixed sequence, on the host.
  static at::Tensor values(c10::IntArrayRef size, c10::ScalarType type = c10::kFloat) {
    auto tensor = at::empty(size, at::TensorOptions().dtype(c10::kFloat));
    std::mt19937 random(7);
    std::uniform_real_distribution<float> between(-1, 1);
    auto* value = tensor.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) value[i] = between(random);
    return tensor.to(type);
  }

  /// What the call throws, "" for nothing.
  template <typename Call>
  static std::string words_of(Call&& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  }

  const c10::InferenceMode no_gradients_;
};

}  // namespace muster::standin
