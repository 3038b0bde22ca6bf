#include <plait/tests/support/scripted_model.hpp>

#include <plait/tests/support/tiny_model.hpp>
#include <plait/tests/support/vocabulary.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace plait::test {
namespace {

constexpr std::uint64_t context = 1024;
constexpr std::uint64_t ffn = 32;

struct words {
    std::vector<std::string> tokens{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    std::vector<std::int32_t> types{3, 3, 3};

    std::size_t id(std::string const& token, std::int32_t type)
    {
        auto const at = std::ranges::find(tokens, token);
        if (at != tokens.end()) return static_cast<std::size_t>(at - tokens.begin());
        tokens.push_back(token);
        types.push_back(type);
        return tokens.size() - 1;
    }
};

} // namespace

gguf_writer scripted_model(scripted_model_options const& options)
{
    words all;
    for (int byte = 0; byte < 256; ++byte)
        all.id(spell(std::string(1, static_cast<char>(byte))), 1);
    for (auto const& token : options.control)
        all.id(token, 3);
    auto const token_of = [&](std::string const& piece) {
        bool const control =
            std::ranges::find(options.control, piece) != options.control.end() || piece == "<|im_end|>";
        return all.id(control ? piece : spell(piece), 1);
    };

    // One dimension of the stream says "no answer's place", each of the others is one place.
    struct place {
        std::size_t position; // whose successor is the token
        std::size_t token;
    };
    std::vector<place> places;
    for (auto const& answer : options.answers) {
        auto pieces = answer.pieces;
        pieces.emplace_back("<|im_end|>");
        places.reserve(places.size() + pieces.size());
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            auto const at = answer.at + i;
            if (at < 1 || at > context || (!places.empty() && places.back().position >= at - 1))
                throw std::invalid_argument("scripted_model: the place of an answer");
            places.push_back({at - 1, token_of(pieces[i])});
        }
    }
    auto const width = (places.size() + 1 + 63) / 64 * 64;

    gguf_writer file;
    auto const number = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    file.set("general.architecture", "gpt2");
    file.set("general.name", "scripted");
    file.set("gpt2.block_count", std::uint32_t{1});
    file.set("gpt2.context_length", number(context));
    file.set("gpt2.embedding_length", number(width));
    file.set("gpt2.feed_forward_length", number(ffn));
    file.set("gpt2.attention.head_count", number(width / 64));
    file.set("gpt2.attention.layer_norm_epsilon", 1e-5f);
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", "gpt-2");
    file.set("tokenizer.ggml.tokens", all.tokens);
    file.set("tokenizer.ggml.token_type", all.types);
    file.set("tokenizer.ggml.merges", std::vector<std::string>{});
    file.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tiny_im_start));
    file.set("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tiny_im_end));
    file.set("tokenizer.ggml.add_bos_token", false);
    if (!options.chat_template.empty()) file.set("tokenizer.chat_template", options.chat_template);

    std::vector<float> positions(context * width), output(all.tokens.size() * width);
    for (std::size_t p = 0; p < context; ++p)
        positions[p * width] = 1;
    output[static_cast<std::size_t>(tiny_im_start) * width] = 1;
    for (std::size_t i = 0; i < places.size(); ++i) {
        auto const row = places[i].position * width;
        positions[row] = 0;
        positions[row + i + 1] = 1;
        output[places[i].token * width + i + 1] = 1;
    }
    auto const floats = ggml_type::f32;
    auto const nothing = [&](std::string const& name, std::uint64_t columns, std::uint64_t rows) {
        file.add(name + ".weight", {columns, rows}, ggml_type::q8_0);
    };
    auto const bias = [&](std::string const& name, std::uint64_t size) { file.add(name + ".bias", {size}, floats); };
    auto const norm = [&](std::string const& name) {
        file.add(name + ".weight", {width}, floats, encode(floats, std::vector<float>(width, 1.0f)));
        bias(name, width);
    };
    nothing("token_embd", width, all.tokens.size());
    file.add("position_embd.weight", {width, context}, floats, encode(floats, positions));
    norm("blk.0.attn_norm");
    norm("blk.0.ffn_norm");
    nothing("blk.0.attn_qkv", width, 3 * width);
    bias("blk.0.attn_qkv", 3 * width);
    nothing("blk.0.attn_output", width, width);
    bias("blk.0.attn_output", width);
    nothing("blk.0.ffn_up", width, ffn);
    bias("blk.0.ffn_up", ffn);
    nothing("blk.0.ffn_down", ffn, width);
    bias("blk.0.ffn_down", width);
    norm("output_norm");
    file.add("output.weight", {width, all.tokens.size()}, floats, encode(floats, output));
    return file;
}

} // namespace plait::test
