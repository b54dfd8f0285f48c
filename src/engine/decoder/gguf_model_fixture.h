#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "spec/decoder_spec.h"

namespace muster::engine {

/// In which numbers a file of these tests has its matrices; vectors are float32.
enum class FileNumbers : std::uint8_t {
  Fp32,
  Q8_0,         // blocks of ggml's
  Fp32OfBlocks  // what those blocks stand for, as float32
};

/// How a file has the experts of a layer: stacked, or, before April 2024, each by itself.
enum class GgufExperts : std::uint8_t { Stacked, Single };

/// The bytes of a GGUF file with the model of a folder of safetensors in float32, as
/// llama.cpp's converter writes it: under its names, in its order of rows and columns, with the
/// keys that it states. What it states no key for is lost: the windows of Qwen 2 and Mistral, the
/// scale of Gemma 2's attention, GPT-2's scale by layer. Without a tokenizer.
///
/// spec: of that folder. Stops the test program where the folder is not as its fixture was made, or
/// its rows are no whole blocks.
/// Source: conversion/*.py of llama.cpp (`set_gguf_parameters`, `modify_tensors` and
/// `generate_extra_tensors` of each family), gguf-py's tensor_mapping.py.
std::string gguf_of_folder(const std::filesystem::path& folder, const DecoderSpec& spec,
                           FileNumbers numbers = FileNumbers::Fp32,
                           GgufExperts experts = GgufExperts::Stacked);

}  // namespace muster::engine
