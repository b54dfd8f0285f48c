// A graph computes one shape. So shapes are made coarse: rows as the products want them, longest
// text and number of texts by powers of two; what a batch lacks are padding and empty texts. A
// shape is captured when it comes the second time, since capturing takes longer than computing it
// once.

#include "engine/models/pass_graphs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>

#include "engine/guard.h"

namespace muster::engine {
namespace {

// Above it the device has as much to do as the launches take. Measured on an H100 with
// all-MiniLM-L6-v2 in bf16 (2026-11-26): a text of 16 tokens takes 0.21 ms by a graph and 1.16
// launched kernel by kernel, 1,024 rows 0.31 and 0.98, 4,096 rows 0.64 and 0.96, of which two lanes
// hide half.
constexpr std::int64_t kRowsMost = 1024;

// The kernel of attention takes 64 queries at a time: finer steps would spare nothing.
constexpr std::int64_t kLongestStep = 64;
constexpr std::int64_t kTextSlotsLeast = 4;

// They share the memory that they compute in; each has its rows and takes some of the driver's.
constexpr std::size_t kGraphsMost = 32;
constexpr std::size_t kShapesMost = 8 * kGraphsMost;  // with those that came once

std::int64_t power_of_two(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

}  // namespace

std::optional<PassShape> PassGraphs::shape_for(const TextBatch& batch, std::int64_t row_count) {
  if (row_count > kRowsMost) return std::nullopt;
  const auto steps = (longest_text(batch) + kLongestStep - 1) / kLongestStep;
  auto shape = least_shape(batch, row_count, kLongestStep * power_of_two(steps));
  shape.text_slots = std::max(kTextSlotsLeast, power_of_two(shape.text_slots));
  return shape;
}

std::size_t PassGraphs::captured_count(const Graphs& graphs) {
  return static_cast<std::size_t>(
      std::count_if(graphs.begin(), graphs.end(),
                    [](const auto& entry) { return entry.second.captured != nullptr; }));
}

void PassGraphs::forget_uncaptured(Graphs& graphs) {
  std::erase_if(graphs, [](const auto& entry) { return entry.second.captured == nullptr; });
}

PassGraphs::Lane& PassGraphs::this_lane() {
  const std::lock_guard lock(mutex_);
  return lanes_[std::this_thread::get_id()];
}

at::Tensor PassGraphs::run(const PackedPass& pass, const PassShape& shape, at::Device device,
                           const Work& work) {
  auto& [pool, graphs] = this_lane();
  const auto found = graphs.find(shape);
  if (found == graphs.end()) {
    if (graphs.size() >= kShapesMost) forget_uncaptured(graphs);
    graphs.emplace(shape, Graph{});
    return work(to_device(pass, device));  // the kernels are loaded, the workspaces taken
  }
  auto& graph = found->second;
  if (!graph.captured && (graph.has_failed || captured_count(graphs) >= kGraphsMost)) {
    return work(to_device(pass, device));
  }
  if (!graph.captured) {
    graph.pass = to_device(pass, device);
    try {
      graph.captured = std::make_unique<CudaGraph>(pool, [&] { graph.rows = work(graph.pass); });
    } catch (const c10::Error& error) {
      pool = CudaGraph::make_pool();
      // There may be memory again when the shape comes the next time.
      graph = {.pass = {}, .rows = {}, .captured = nullptr, .has_failed = !is_out_of_memory(error)};
      return work(to_device(pass, device));
    }
  } else {
    copy_numbers(pass, graph.pass);
  }
  graph.captured->replay();
  return graph.rows;
}

}  // namespace muster::engine
