#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::engine {

/// Whether this process may use AMX's tiles: the CPU has them, with products of bf16 and of bytes,
/// and Linux has let the process keep their state (8 KiB a thread). Linux is asked once.
/// Source: Intel Architecture Instruction Set Extensions, chapter 3 (CPUID.7.EDX bits 22, 24, 25);
/// Linux, Documentation/arch/x86/xstate.rst (ARCH_REQ_XCOMP_PERM).
bool has_amx_tiles();

// What follows is only for functions of a file compiled for AMX.
//
// A tile is up to 16 rows of up to 64 bytes. In a product of tiles C += A B the rows of A are rows
// of x, and a row of B holds, side by side, 4 bytes of each of 16 outputs: 2 inputs of bf16 or 4 of
// 8 bits, which is how panels of 16 outputs stand in memory.
//
// TDPBF16PS, for every element of C by itself: the even inputs of the tile are summed from zero in
// float32 by fused multiplication and addition, so are the odd ones, both are added, and their sum
// to C. So an element does not depend on how many rows its tile has. Denormal numbers count as
// zero, whatever the thread's mode. Source: Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2, TDPBF16PS.

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileRowBytes = 64;

/// The shapes of the eight tiles, in the layout of LDTILECFG.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  [[gnu::always_inline]] void set(std::size_t tile, std::size_t row_count, std::size_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(row_count);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};

/// Whole tiles but for rows: tiles 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 weights. Of two
/// tiles of rows the second one has `last_rows` (2, 3 and 5), of one the first (0 to 4).
template <int kRowTiles>
[[gnu::always_inline]] inline TileShapes tile_shapes(std::size_t last_rows) {
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 8; ++tile) shapes.set(tile, kTileRows, kTileRowBytes);
  if constexpr (kRowTiles == 2) {
    for (const std::size_t tile : {2U, 3U, 5U}) shapes.set(tile, last_rows, kTileRowBytes);
  } else {
    for (const std::size_t tile : {0U, 1U, 2U, 3U, 4U}) shapes.set(tile, last_rows, kTileRowBytes);
  }
  return shapes;
}

/// Holds the tiles of this thread while it lives: they are given back at its end, so that a switch
/// of threads need not save them.
///
/// GCC 12's own intrinsics do not say which memory they read and write, hence the assembly here.
class TileUse {
 public:
  [[gnu::always_inline]] explicit TileUse(const TileShapes& shapes) { set(shapes); }
  [[gnu::always_inline]] ~TileUse() { asm volatile("tilerelease" ::: "memory"); }
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;

  [[gnu::always_inline]] static void set(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  }
};

template <int kTile>
[[gnu::always_inline]] inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
/// stride: bytes from one row to the next.
template <int kTile>
[[gnu::always_inline]] inline void tile_load(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void tile_store(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
/// C += A B, pairs of bf16.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
/// C += A B in integers, A of bytes with a sign and B of bytes without.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_signed_unsigned() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
/// C += A B in integers, both of bytes with a sign.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_signed() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

}  // namespace muster::engine
