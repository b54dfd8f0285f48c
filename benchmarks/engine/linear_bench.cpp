// Our products beside torch's two, on one core: GFLOP/s for the shapes of small and large encoders.
// In float32, of interest where `best_fp32_product` is ours, and ours in 8 bits: the whole of it,
// with the rows made 8-bit numbers, and the product alone.

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "engine/ops/int8_product.h"
#include "engine/ops/packed_linear.h"

namespace {

using namespace muster;
using namespace muster::engine;
using Scalars = c10::List<std::optional<at::Scalar>>;

struct Shape {
  std::int64_t rows, in, out;
};

constexpr Shape kShapes[] = {{18, 384, 1152},  {18, 1536, 384},   {72, 384, 1536},
                             {240, 384, 1152}, {240, 384, 384},   {240, 384, 1536},
                             {240, 1536, 384}, {240, 1024, 4096}, {240, 4096, 1024}};

template <typename Compute>
double gflops(const Shape& shape, Compute&& compute) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 3; ++i) compute();
  const auto begin = Clock::now();
  double seconds = 0;
  double count = 0;
  while (seconds < 0.5) {
    compute();
    ++count;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return 2e-9 * static_cast<double>(shape.rows * shape.in * shape.out) * count / seconds;
}

// Source of the operators: src/engine/ops/packed_linear.cpp.
at::Tensor reordered(const at::Tensor& weight, std::int64_t rows) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                             .typed<at::Tensor(const at::Tensor&, std::optional<std::int64_t>)>();
  return op.call(weight, rows);
}

// The 8-bit product without what makes rows of it, again and again.
class Int8Product {
 public:
  Int8Product(const Shape& shape, const at::Tensor& x, const at::Tensor& weight)
      : shape_(shape), kernels_(best_int8_kernels()) {
    const auto in = static_cast<std::size_t>(shape.in);
    const auto out = static_cast<std::size_t>(shape.out);
    const auto padded = Int8Matrix::padded_outputs(out);
    panels_.resize(padded * Int8Matrix::padded_inputs(in));
    weight_scales_.resize(padded);
    sums_.resize(padded);
    bias_.resize(padded);
    pack_int8_panels(weight.const_data_ptr<float>(), out, in,
                     {panels_.data(), weight_scales_.data(), sums_.data()});
    const auto rows = static_cast<std::size_t>(shape.rows);
    quants_.resize(rows * Int8Matrix::padded_inputs(in));
    scales_.resize(rows);
    out_.resize(rows * out);
    kernels_.quantize(rows, in, x.const_data_ptr<float>(), quants_.data(), scales_.data());
  }

  void multiply() {
    const auto out = static_cast<std::size_t>(shape_.out);
    const Int8Matrix matrix{panels_.data(),
                            weight_scales_.data(),
                            sums_.data(),
                            bias_.data(),
                            static_cast<std::size_t>(shape_.in),
                            out};
    const Int8Rows rows{scales_.size(), quants_.data(), scales_.data()};
    kernels_.multiply(matrix, 0, Int8Matrix::panel_count(out), rows, std::nullopt, out_.data());
  }

 private:
  Shape shape_;
  const Int8Kernels& kernels_;
  std::vector<std::int8_t> panels_;
  std::vector<float> weight_scales_, bias_, scales_, out_;
  std::vector<std::int32_t> sums_;
  std::vector<std::uint8_t> quants_;
};

at::Tensor by_onednn(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     std::string_view activation, std::string_view kind) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            std::string_view, Scalars, std::optional<std::string_view>)>();
  return op.call(x, weight, bias, activation, Scalars(), kind);
}

}  // namespace

int main() {
  const c10::InferenceMode no_gradients;
  at::set_num_threads(1);
  std::printf("8 bits by %s\n", std::string(best_int8_kernels().name).c_str());
  std::printf(
      "rows    in   out    ours  +gelu   oneDNN  +gelu   at::linear   int8  +gelu   product   "
      "GFLOP/s\n");
  for (const auto& shape : kShapes) {
    const auto x = at::randn({shape.rows, shape.in});
    const auto weight = at::randn({shape.out, shape.in});
    const auto bias = at::randn({shape.out});
    const PackedLinear ours(weight, bias, Precision::Fp32, shape.rows);
    const PackedLinear int8(weight, bias, Precision::Int8, shape.rows);
    Int8Product product(shape, x, weight);
    const auto packed = reordered(weight, shape.rows);
    std::printf("%4ld  %4ld  %4ld  %6.1f %6.1f   %6.1f %6.1f   %6.1f   %6.1f %6.1f   %6.1f\n",
                shape.rows, shape.in, shape.out, gflops(shape, [&] { ours.apply(x); }),
                gflops(shape, [&] { ours.apply(x, Activation::Gelu); }),
                gflops(shape, [&] { by_onednn(x, packed, bias, "none", ""); }),
                gflops(shape, [&] { by_onednn(x, packed, bias, "gelu", "none"); }),
                gflops(shape, [&] { at::linear(x, weight, bias); }),
                gflops(shape, [&] { int8.apply(x); }),
                gflops(shape, [&] { int8.apply(x, Activation::Gelu); }),
                gflops(shape, [&] { product.multiply(); }));
  }
}
