#pragma once

#include <plait/tests/support/gguf_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace plait::test {

/// The small random model that `tiny_model` makes: architecture `llama`, a byte-level BPE vocabulary, a ChatML
/// template. It runs in milliseconds, and its greedy answers vary, but they mean nothing. The same options give the
/// same bytes on every machine.
struct tiny_model_options {
    std::uint32_t layers = 2;
    std::uint32_t width = 64;
    std::uint32_t heads = 4;
    std::uint32_t kv_heads = 2;
    std::uint32_t head_dim = 0; ///< 0: width / heads
    std::uint32_t ffn = 128;
    std::uint32_t vocabulary = 320; ///< at least 259: three control tokens and the 256 bytes; the rest are merges
    std::uint32_t context = 256;
    std::uint64_t seed = 1;
    ggml_type weights = ggml_type::f32;       ///< of the matrices: one that `encode` takes
    std::map<std::string, ggml_type> types{}; ///< of matrices by name, for example {"token_embd.weight", q8_0}
    bool tied_output = true;
    float rope_base = 10000.0f;
    std::vector<float> rope_factors{}; ///< head_dim / 2 of them, written as rope_freqs.weight; or none
    float epsilon = 1e-5f;
    float logit_spread = 4.0f; ///< roughly the standard deviation of a logit
};

/// Ids of the control tokens of every tiny model.
inline constexpr std::int32_t tiny_end_of_text = 0; ///< <|endoftext|>
inline constexpr std::int32_t tiny_im_start = 1;    ///< <|im_start|>, also the bos token
inline constexpr std::int32_t tiny_im_end = 2;      ///< <|im_end|>, also the eos token

/// The model in parts, for tests that change something before they write it.
gguf_writer tiny_model(tiny_model_options const& options = {});

/// The bytes of its file.
std::vector<std::byte> tiny_model_bytes(tiny_model_options const& options = {});

/// Writes its file. Throws std::runtime_error where that fails.
void write_tiny_model(std::filesystem::path const& path, tiny_model_options const& options = {});

/// A file in the system's temporary folder with a name of its own, removed by the destructor.
class temporary_file {
public:
    explicit temporary_file(std::span<std::byte const> content, std::string_view suffix = ".gguf");
    ~temporary_file();
    temporary_file(temporary_file const&) = delete;
    temporary_file& operator=(temporary_file const&) = delete;

    std::filesystem::path const& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

} // namespace plait::test
