// torch's plain matrix product on operands whose answer is known, so that one test measures the
// speed and finds a device that computes wrongly. Operands are shared by the lanes and each lane
// has a result of its own. The images are computed on the host in double, in parts, so a result of
// any size needs little memory. See spec/test_product.h for the operands.

#include "engine/product_bench.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/encoder.h"
#include "engine/gpu.h"
#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/ops/packed_linear.h"

namespace muster::engine {

struct ProductBench::Parts {
  TestProduct product;
  at::Tensor left;                  // [size, size], on the device
  at::Tensor right;                 // [size, size]
  std::vector<at::Tensor> results;  // a lane each: [size, size]
};

namespace {

at::Tensor host_tensor(std::uint32_t size) {
  return at::empty({size, size}, at::TensorOptions().dtype(at::kFloat));
}

std::span<float> values_of(at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

at::ScalarType type_of(Precision precision) {
  return precision == Precision::Fp16 ? at::kHalf : scalar_type(precision);
}

}  // namespace

ProductBench::ProductBench(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ProductBench::~ProductBench() = default;

Result<std::unique_ptr<ProductBench>> ProductBench::load(const TestProduct& product,
                                                         DeviceKind device,
                                                         std::uint32_t lane_count) {
  if (runs_as_gpu(device)) MUSTER_TRY(open_gpu(device));
  return guarded([&]() -> Result<std::unique_ptr<ProductBench>> {
    const c10::InferenceMode no_gradients;
    const auto options =
        at::TensorOptions().device(torch_device(device)).dtype(type_of(product.precision));
    auto left = host_tensor(product.size);
    fill_left(product, values_of(left));
    auto right = host_tensor(product.size);
    fill_right(product, values_of(right));
    auto parts = std::make_unique<Parts>();
    parts->product = product;
    parts->left = left.to(options);
    parts->right = right.to(options);
    for (std::uint32_t lane = 0; lane < lane_count; ++lane) {
      parts->results.push_back(at::empty({product.size, product.size}, options));
    }
    return std::unique_ptr<ProductBench>(new ProductBench(std::move(parts)));
  });
}

Status ProductBench::multiply(std::uint32_t lane) {
  return guarded([&]() -> Status {
    const c10::InferenceMode no_gradients;
    auto& result = parts_->results.at(lane);
    at::mm_out(result, parts_->left, parts_->right);
    // A GPU works on its own; asking for one entry waits for it.
    if (!result.is_cpu()) (void)result.select(0, 0).select(0, 0).item<float>();
    return Done{};
  });
}

Result<std::vector<double>> ProductBench::images(std::uint32_t lane) const {
  return guarded([&]() -> Result<std::vector<double>> {
    const c10::InferenceMode no_gradients;
    const auto& product = parts_->product;
    const auto& result = parts_->results.at(lane);
    constexpr std::int64_t kRowsAtOnce = 1024;  // 64 MB of doubles for the largest size
    std::vector<double> images;
    for (std::uint32_t image = 0; image < TestProduct::kImageCount; ++image) {
      const auto x = test_vector(product, image);
      auto vector = at::empty({product.size}, at::TensorOptions().dtype(at::kDouble));
      std::copy(x.begin(), x.end(), vector.data_ptr<double>());
      for (std::int64_t row = 0; row < product.size; row += kRowsAtOnce) {
        const auto count = std::min<std::int64_t>(kRowsAtOnce, product.size - row);
        const auto rows = result.narrow(0, row, count).to(at::kCPU).to(at::kDouble);
        const auto y = at::mv(rows, vector);
        images.insert(images.end(), y.data_ptr<double>(), y.data_ptr<double>() + count);
      }
    }
    return images;
  });
}

}  // namespace muster::engine
