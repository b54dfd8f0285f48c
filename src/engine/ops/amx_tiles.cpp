// Whether AMX may be used. Its state is large, so Linux keeps it only for processes that ask; one
// that does not ask is killed by its first tile instruction.

#include "engine/ops/amx_tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "engine/ops/bf16_product.h"

namespace muster::engine {
namespace {

// Source: Linux, arch/x86/include/uapi/asm/prctl.h and arch/x86/include/asm/fpu/types.h.
constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA

bool ask_linux() { return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0; }

}  // namespace

// What surrounds the tiles' products is written for AVX-512 with bf16, which every CPU with AMX
// has.
bool has_amx_tiles() {
  static const bool has = has_avx512_bf16() && __builtin_cpu_supports("amx-tile") &&
                          __builtin_cpu_supports("amx-bf16") &&
                          __builtin_cpu_supports("amx-int8") &&
                          __builtin_cpu_supports("avx512vnni") && ask_linux();
  return has;
}

}  // namespace muster::engine
