#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/blocks_portable.h"
#include "engine/ops/decoder_kernel_table.h"
#include "engine/ops/decoder_kernels_by_cpu.h"
#include "engine/ops/simd_portable.h"

namespace muster::engine {

constinit const DecoderKernels kPortableDecoderKernels =
    decoder_kernel_table<SimdPortable, BlocksPortable>("portable");

}  // namespace muster::engine
