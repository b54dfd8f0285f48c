#pragma once

#include <filesystem>
#include <string>

#include "spec/decoder_spec.h"

namespace muster::engine {

/// The bytes of a GGUF file in float32 with the model of a folder of safetensors in float32, as
/// llama.cpp's converter writes it: under its names, in its order of rows and columns, with the
/// keys that it states. What it states no key for is lost: the windows of Qwen 2 and Mistral, the
/// scale of Gemma 2's attention, GPT-2's scale by layer. Without a tokenizer.
///
/// spec: of that folder. Stops the test program where the folder is not as its fixture was made.
/// Source: conversion/*.py of llama.cpp (`set_gguf_parameters`, `modify_tensors` and
/// `generate_extra_tensors` of each family), gguf-py's tensor_mapping.py.
std::string gguf_of_folder(const std::filesystem::path& folder, const DecoderSpec& spec);

}  // namespace muster::engine
