#include <plait/model/files/hf_directory.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/fingerprint.hpp>
#include <plait/model/files/safetensors_index.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <system_error>
#include <utility>

namespace plait {
namespace {

constexpr std::uint64_t max_template_bytes = 4 << 20;

constexpr std::uint64_t packed_bytes = 16; // of the 32 elements of a block
constexpr std::uint64_t block_bytes = 1 + packed_bytes;
static_assert(layout(ggml_type::mxfp4).bytes == block_bytes);
constexpr std::uint32_t assembled = ~std::uint32_t{0}; // the `file` of a tensor that a pair makes

bool is_there(std::filesystem::path const& path)
{
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

std::optional<json_config> open_if_there(std::filesystem::path const& path)
{
    if (!is_there(path)) return std::nullopt;
    return json_config::open(path);
}

/// Weights that were quantised in a way that needs more than their own bytes.
void refuse_quantization(json_config const& config)
{
    auto const how = config.find_object("quantization_config");
    if (!how) return;
    std::string const method = how->string("quant_method", "");
    if (method != "mxfp4")
        throw error(errc::unsupported, how->where("quant_method") + ": weights quantised with " + quote(method) +
                                           " are not read; mxfp4 is");
}

/// The field `chat_template` of `config`: text, or a list of named ones.
std::string template_of(json_config const& config)
{
    if (!config.is_array("chat_template")) return config.string("chat_template", "");
    auto const named = config.objects("chat_template");
    if (named.empty()) return {};
    auto const found = std::ranges::find_if(named, [](json_config const& t) { return t.string("name") == "default"; });
    return (found == named.end() ? named.front() : *found).string("template");
}

} // namespace

hf_directory hf_directory::open(std::filesystem::path const& folder)
{
    hf_directory out;
    out.folder_ = folder;
    out.source_ = folder.string();
    std::error_code failed;
    bool const is_folder = std::filesystem::is_directory(folder, failed);
    if (!is_folder)
        throw error(is_there(folder) ? errc::io : errc::not_found, out.source_ + ": is not a folder that can be read");
    out.config_ = json_config::open(folder / "config.json");
    refuse_quantization(*out.config_);
    if (auto const text = out.config_->find_object("text_config")) refuse_quantization(*text);
    out.generation_ = open_if_there(folder / "generation_config.json");
    out.tokenizer_ = open_if_there(folder / "tokenizer_config.json");
    out.read_chat_template();
    out.open_weights();
    for (std::uint32_t i = 0; i < out.shards_.size(); ++i)
        for (stored_tensor tensor : out.shards_[i].tensors()) {
            tensor.file = i;
            out.tensors_.push_back(tensor);
        }
    out.index_tensors();
    out.join_pairs();
    return out;
}

void hf_directory::read_chat_template()
{
    if (auto const text = folder_ / "chat_template.jinja"; is_there(text))
        chat_template_ = read_text_file(text, max_template_bytes);
    else if (auto const json = open_if_there(folder_ / "chat_template.json"))
        chat_template_ = template_of(*json);
    else if (tokenizer_)
        chat_template_ = template_of(*tokenizer_);
}

void hf_directory::open_weights()
{
    // The order in which transformers looks for them.
    auto const whole = folder_ / "model.safetensors";
    auto const index = folder_ / "model.safetensors.index.json";
    if (is_there(whole)) {
        shards_.push_back(safetensors_file::open(whole));
        return;
    }
    if (is_there(index)) return open_shards(index);
    for (char const* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
        if (is_there(folder_ / pickled))
            throw error(errc::unsupported,
                        source_ + ": " + pickled + ": weights in pickles are not read; save them as safetensors");
    throw error(errc::not_found, source_ + ": has neither model.safetensors nor model.safetensors.index.json");
}

void hf_directory::open_shards(std::filesystem::path const& index)
{
    auto const fail = [&](std::string_view tensor, std::string const& what) {
        throw error(errc::bad_file, index.string() + ": tensor " + quote(tensor) + ": " + what);
    };
    safetensors_index const all = safetensors_index::open(index);
    shards_.reserve(all.shards.size());
    for (std::uint32_t i = 0; i < all.shards.size(); ++i) {
        shards_.push_back(safetensors_file::open(folder_ / all.shards[i]));
        for (stored_tensor const& tensor : shards_[i].tensors()) {
            auto const listed = all.shard_of.find(tensor.name);
            if (listed == all.shard_of.end()) fail(tensor.name, "not listed, but " + all.shards[i] + " has it");
            if (listed->second != i)
                fail(tensor.name,
                     "listed in " + all.shards[listed->second] + ", but " + all.shards[i] + " has it, too");
        }
    }
    for (auto const& [name, shard] : all.shard_of)
        if (shards_[shard].find_tensor(name) == nullptr)
            fail(name, "listed in " + all.shards[shard] + ", missing there");
}

void hf_directory::index_tensors()
{
    by_name_.resize(tensors_.size());
    std::iota(by_name_.begin(), by_name_.end(), 0u);
    std::ranges::sort(by_name_, {}, [&](std::uint32_t i) { return tensors_[i].name; });
}

void hf_directory::join_pairs()
{
    constexpr std::string_view blocks_suffix = "_blocks";
    auto const is_bytes = [](stored_tensor const& t) { return t.foreign_type == "U8"; };
    auto const fail = [&](stored_tensor const& tensor, std::string const& what) {
        throw error(errc::bad_file, source_ + ": tensor " + quote(tensor.name) + ": " + what);
    };
    std::vector<stored_tensor> joined;
    std::vector<bool> used(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        stored_tensor const& blocks = tensors_[i];
        if (!blocks.name.ends_with(blocks_suffix) || !is_bytes(blocks)) continue;
        std::string name(blocks.name.substr(0, blocks.name.size() - blocks_suffix.size()));
        stored_tensor const* scales = find_tensor(name + "_scales");
        if (scales == nullptr || !is_bytes(*scales)) fail(blocks, "has no U8 scales " + quote(name + "_scales"));
        if (find_tensor(name) != nullptr) fail(blocks, quote(name) + " is there, too");
        if (blocks.rank < 3 || blocks.dims[0] != packed_bytes)
            fail(blocks, "expected the shape [16, columns / 32, rows, experts], found " + shape(blocks));
        std::array<std::int64_t, 4> const expected{blocks.dims[1], blocks.dims[2], blocks.dims[3], 1};
        if (scales->dims != expected) fail(*scales, "its shape " + shape(*scales) + " does not fit " + shape(blocks));

        stored_tensor tensor;
        tensor.type = ggml_type::mxfp4;
        tensor.rank = blocks.rank - 1;
        tensor.dims = {blocks.dims[1] * 32, blocks.dims[2], blocks.dims[3], 1};
        tensor.offset = pairs_.size();
        tensor.bytes = scales->bytes * block_bytes;
        tensor.file = assembled;
        used[i] = true;
        used[static_cast<std::size_t>(scales - tensors_.data())] = true;
        pairs_.push_back(std::make_unique<pair>(pair{std::move(name), blocks, *scales}));
        tensor.name = pairs_.back()->name;
        joined.push_back(tensor);
    }
    if (pairs_.empty()) return;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        if (!used[i]) joined.push_back(tensors_[i]);
    tensors_ = std::move(joined);
    index_tensors();
}

stored_tensor const* hf_directory::find_tensor(std::string_view name) const noexcept
{
    auto const at = std::ranges::lower_bound(by_name_, name, {}, [&](std::uint32_t i) { return tensors_[i].name; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

void hf_directory::read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const
{
    check_range(tensor, offset, out.size());
    if (tensor.file == assembled)
        read_pair(*pairs_[static_cast<std::size_t>(tensor.offset)], offset, out);
    else
        shards_[tensor.file].read(tensor, offset, out);
}

/// Assembles the blocks that `out` touches, some thousand at a time.
void hf_directory::read_pair(pair const& from, std::uint64_t offset, std::span<std::byte> out) const
{
    constexpr std::uint64_t at_once = 4096;
    std::vector<std::byte> packed;
    std::vector<std::byte> scales;
    while (!out.empty()) {
        std::uint64_t const first = offset / block_bytes;
        std::uint64_t const end = (offset + out.size() + block_bytes - 1) / block_bytes;
        std::uint64_t const count = std::min(at_once, end - first);
        packed.resize(static_cast<std::size_t>(count * packed_bytes));
        scales.resize(static_cast<std::size_t>(count));
        shards_[from.blocks.file].read(from.blocks, first * packed_bytes, packed);
        shards_[from.scales.file].read(from.scales, first, scales);
        std::size_t written = 0;
        std::uint64_t skip = offset % block_bytes;
        for (std::uint64_t b = 0; b < count; ++b, skip = 0) {
            auto const in = std::span(packed).subspan(static_cast<std::size_t>(b * packed_bytes), packed_bytes);
            std::array<std::byte, block_bytes> block{scales[static_cast<std::size_t>(b)]};
            auto const element = [&](std::size_t i) { return in[i / 2] >> (i % 2 * 4) & std::byte{15}; };
            for (std::size_t j = 0; j < packed_bytes; ++j)
                block[1 + j] = element(j) | element(j + packed_bytes) << 4;
            auto const wanted = std::span(block).subspan(static_cast<std::size_t>(skip));
            std::size_t const length = std::min(wanted.size(), out.size() - written);
            std::copy_n(wanted.begin(), length, out.begin() + static_cast<std::ptrdiff_t>(written));
            written += length;
        }
        offset += written;
        out = out.subspan(written);
    }
}

void hf_directory::check_unchanged() const
{
    for (safetensors_file const& shard : shards_)
        shard.check_unchanged();
}

std::uint64_t hf_directory::fingerprint() const
{
    std::string_view const config = config_->text();
    std::uint64_t hash = mix(shards_.size(), std::as_bytes(std::span(config.data(), config.size())));
    for (safetensors_file const& shard : shards_) {
        std::uint64_t const header = shard.header_hash();
        hash = mix(hash, std::as_bytes(std::span(&header, 1)));
    }
    return mix_samples(hash, *this);
}

} // namespace plait
