#pragma once

#include <plait/model/files/json_config.hpp>
#include <plait/model/files/safetensors.hpp>
#include <plait/model/files/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// A folder as Hugging Face's transformers writes it: `config.json`, and the weights in `model.safetensors` or in the
/// shards that `model.safetensors.index.json` lists. Every tensor lies in the shard that the index says, and the shards
/// have no others; shards lie in the folder itself.
///
/// gpt-oss publishes its experts as pairs of U8 tensors, `X_blocks` [experts, rows, columns / 32, 16] and `X_scales`
/// [experts, rows, columns / 32]. Each pair is presented as one tensor `X` of type MXFP4 and of dims
/// {columns, rows, experts}, whose bytes `read` assembles: in a block of ggml a scale comes before 16 bytes, of which
/// byte j holds elements j and j + 16; the published bytes hold elements 2j and 2j + 1.
///
/// Move-only. Every error's context starts with the file and names the field or the tensor.
class hf_directory final : public tensor_source {
public:
    /// Errors: errc::not_found (no such folder, no config.json, no weights, a shard that is missing), errc::io,
    /// errc::bad_file, errc::unsupported (weights only as pickles; `quantization_config` of another method than mxfp4).
    static hf_directory open(std::filesystem::path const& folder);

    /// The folder, for the files of it that others read.
    std::filesystem::path const& folder() const noexcept { return folder_; }
    json_config const& config() const noexcept { return *config_; }
    /// `generation_config.json` and `tokenizer_config.json`, or null.
    json_config const* generation_config() const noexcept { return generation_ ? &*generation_ : nullptr; }
    json_config const* tokenizer_config() const noexcept { return tokenizer_ ? &*tokenizer_ : nullptr; }
    /// The chat template: `chat_template.jinja`, else `chat_template` of chat_template.json or of
    /// tokenizer_config.json, which may be a list of named ones: then the one called "default", or the first.
    /// Empty where there is none.
    std::string const& chat_template() const noexcept { return chat_template_; }

    std::string const& source() const noexcept override { return source_; }
    std::span<stored_tensor const> tensors() const noexcept override { return tensors_; }
    stored_tensor const* find_tensor(std::string_view name) const noexcept override;
    void read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const override;
    void check_unchanged() const override;
    std::uint64_t fingerprint() const override;

private:
    /// The two tensors that make one of MXFP4.
    struct pair {
        std::string name;
        stored_tensor blocks, scales;
    };

    hf_directory() = default;
    void open_weights();
    void open_shards(std::filesystem::path const& index);
    void read_chat_template();
    void join_pairs();
    void index_tensors();
    void read_pair(pair const& from, std::uint64_t offset, std::span<std::byte> out) const;

    std::filesystem::path folder_;
    std::string source_;
    std::optional<json_config> config_, generation_, tokenizer_;
    std::string chat_template_;
    std::vector<safetensors_file> shards_;
    std::vector<std::unique_ptr<pair>> pairs_; // by stored_tensor::offset of the tensors that they make
    std::vector<stored_tensor> tensors_;
    std::vector<std::uint32_t> by_name_;
};

} // namespace plait
