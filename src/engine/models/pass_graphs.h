#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/cuda_graph.h"
#include "engine/models/packed_pass.h"

namespace muster::engine {

/// Small passes on a GPU, where launching the kernels takes longer than computing them: each shape
/// that comes again is captured as a graph. A lane has its own graphs, since a graph computes in
/// memory of its own. The kernels, and so the bits, are those of the pass without a graph.
///
/// Threads: any; each is a lane with a stream of its own.
class PassGraphs {
 public:
  /// What a pass is computed by: rows [texts, dim] on the device, for every text of the pass.
  using Work = std::function<at::Tensor(const PackedPass&)>;

  /// The shape to arrange a batch in, so that few graphs serve many batches; nullopt: the batch is
  /// too large to gain by one. `row_count` is what its products want.
  static std::optional<PassShape> shape_for(const TextBatch& batch, std::int64_t row_count);

  /// Computes `pass`, which is on the host and has the shape. Without a graph the first time, by
  /// one from the second on; where capturing fails for want of memory, it is tried again when
  /// the shape comes again, and for another reason never.
  ///
  /// The result is on the device and holds until the lane's next call.
  at::Tensor run(const PackedPass& pass, const PassShape& shape, at::Device device,
                 const Work& work);

 private:
  struct Graph {
    PackedPass pass;  // on the device: what the graph reads
    at::Tensor rows;  // what it writes
    std::unique_ptr<CudaGraph> captured;
    bool has_failed = false;
  };
  using Graphs = std::map<PassShape, Graph>;
  struct Lane {
    CudaGraph::Pool pool = CudaGraph::make_pool();
    Graphs graphs;
  };

  static std::size_t captured_count(const Graphs& graphs);
  static void forget_uncaptured(Graphs& graphs);

  Lane& this_lane();

  std::mutex mutex_;
  std::map<std::thread::id, Lane> lanes_;
};

}  // namespace muster::engine
