#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace muster {

/// XXH3-128 over all of a decoder's files that can change a reply: a GGUF file whole, under
/// whatever name; of a folder in Hugging Face's layout configs, tokenizer, chat templates and
/// weights, as far as they are there. Cost: every byte is read once.
///
/// Errors: NotFound (no such GGUF file), Corrupt (a file that is cut shorter meanwhile, a broken
/// index of weights), those of reading.
Result<std::string> decoder_hash(const std::filesystem::path& source);

/// What a measurement of a decoder goes by, without reading it twice: XXH3-128 over the sizes of
/// config.json and of its files of weights, their first MiB, and 64 pieces of 4 KiB spread over
/// each. Other weights of the same shapes are told apart by any byte of these pieces; files that
/// differ elsewhere alone are one model here. Cost: 1.3 MB of each file.
///
/// Errors: as decoder_hash.
Result<std::string> decoder_sample_hash(const std::filesystem::path& source);

/// The files of a decoder that a worker loads, as they were when this was made: a GGUF file, all
/// files of a split one, or config.json and the weights of a folder. It goes by what the system
/// says of each (device, inode, size, time of the last change): a file that was replaced or written
/// to has changed, one that is only read has not.
///
/// Cost: a look at each file, and the index of a folder's weights. Threads: immutable.
class DecoderStamp {
 public:
  explicit DecoderStamp(std::filesystem::path source);

  /// False, too, where none of them was there then or is now: whoever loads them says so.
  bool has_changed() const;

 private:
  std::filesystem::path source_;
  std::string then_;  // empty: none was there
};

}  // namespace muster
