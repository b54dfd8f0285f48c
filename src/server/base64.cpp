// Base64: 24 bytes at a time where the CPU has AVX2, and by a table of pairs for the rest.

#include "server/base64.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

using CharPair = std::array<char, 2>;

// Both characters of twelve bits.
constexpr std::array<CharPair, 4096> make_pairs() {
  std::array<CharPair, 4096> pairs{};
  for (std::size_t bits = 0; bits < pairs.size(); ++bits) {
    pairs[bits] = {kAlphabet[bits >> 6], kAlphabet[bits & 63]};
  }
  return pairs;
}
constexpr auto kPairs = make_pairs();

char* put_pair(char* out, std::uint32_t bits) {
  std::memcpy(out, kPairs[bits].data(), 2);
  return out + 2;
}

char* put_base64_by_table(std::span<const std::byte> bytes, char* out) {
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 3; left -= 3, in += 3) {
    const std::uint32_t bits =
        static_cast<std::uint32_t>(in[0]) << 16 | static_cast<std::uint32_t>(in[1]) << 8 | in[2];
    out = put_pair(out, bits >> 12);
    out = put_pair(out, bits & 0xFFF);
  }
  if (left == 0) return out;
  const std::uint32_t bits = static_cast<std::uint32_t>(in[0]) << 16 |
                             (left == 2 ? static_cast<std::uint32_t>(in[1]) << 8 : 0);
  out = put_pair(out, bits >> 12);
  *out++ = left == 2 ? kAlphabet[bits >> 6 & 63] : '=';
  *out++ = '=';
  return out;
}

#if defined(__x86_64__)

// Twelve bytes at the beginning of each half become sixteen numbers of six bits, a byte each.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i spread_sextets(__m256i bytes) {
  // Of three bytes a b c: "b a c b", so that each number lies within one 16-bit word.
  const __m256i order = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10,  //
                                         1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  const __m256i words = _mm256_shuffle_epi8(bytes, order);
  // The products shift each number to its place: the first and third right, the others left.
  const __m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(words, _mm256_set1_epi32(0x0FC0FC00)),
                                         _mm256_set1_epi32(0x04000040));
  const __m256i even = _mm256_mullo_epi16(_mm256_and_si256(words, _mm256_set1_epi32(0x003F03F0)),
                                          _mm256_set1_epi32(0x01000010));
  return _mm256_or_si256(odd, even);
}

// A number's character is the number plus what its range has: 0 to 25 row 13, 26 to 51 row 0, the
// ten digits rows 1 to 10, '+' row 11, '/' row 12.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i spell_sextets(__m256i numbers) {
  constexpr char kSmall = 'a' - 26;
  constexpr char kDigit = '0' - 52;
  constexpr char kPlus = '+' - 62;
  constexpr char kSlash = '/' - 63;
  const __m256i shifts =
      _mm256_setr_epi8(kSmall, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit,
                       kDigit, kDigit, kPlus, kSlash, 'A', 0, 0,  //
                       kSmall, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit, kDigit,
                       kDigit, kDigit, kPlus, kSlash, 'A', 0, 0);
  const __m256i above = _mm256_subs_epu8(numbers, _mm256_set1_epi8(51));
  const __m256i is_capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), numbers);
  const __m256i row = _mm256_or_si256(above, _mm256_and_si256(is_capital, _mm256_set1_epi8(13)));
  return _mm256_add_epi8(numbers, _mm256_shuffle_epi8(shifts, row));
}

[[gnu::target("avx2")]] char* put_base64_avx2(std::span<const std::byte> bytes, char* out) {
  constexpr std::size_t kStep = 24;
  constexpr std::size_t kHalf = 12;
  constexpr std::size_t kRead =
      kHalf + sizeof(__m128i);  // the second half is read with what follows
  while (bytes.size() >= kRead) {
    const auto* in = bytes.data();
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + kHalf));
    const __m256i numbers = spread_sextets(_mm256_set_m128i(second, first));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), spell_sextets(numbers));
    bytes = bytes.subspan(kStep);
    out += sizeof(__m256i);
  }
  // g++ 12 leaves it out before a tail call: all SSE of the server would be slower until the next.
  _mm256_zeroupper();
  return put_base64_by_table(bytes, out);
}

#endif

}  // namespace

std::vector<PutBase64> put_base64_available() {
  std::vector<PutBase64> available{put_base64_by_table};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) available.push_back(put_base64_avx2);
#endif
  return available;
}

char* put_base64(std::span<const std::byte> bytes, char* out) {
  static const PutBase64 quickest = put_base64_available().back();
  return quickest(bytes, out);
}

}  // namespace muster
