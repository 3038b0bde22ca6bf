#include <plait/tests/support/tiny_model.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace plait::test {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere, which the standard distributions do not promise.
class random_values {
public:
    explicit random_values(std::uint64_t seed)
        : state_(seed)
    {
    }

    /// `count` values, uniform around `centre` with standard deviation `deviation`.
    std::vector<float> uniform(std::uint64_t count, float centre, float deviation)
    {
        std::vector<float> values(count);
        for (float& value : values) {
            float const unit = static_cast<float>(next() >> 40) * 0x1p-24f; // 24 bits: exact in F32
            value = centre + deviation * std::sqrt(12.0f) * (unit - 0.5f);
        }
        return values;
    }

private:
    std::uint64_t next()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    std::uint64_t state_;
};

std::string utf8(unsigned code)
{
    if (code < 0x80) return {static_cast<char>(code)};
    return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

/// GPT-2's names of the bytes, in the order of its vocabulary: printable bytes are themselves, the others follow from
/// U+0100.
std::vector<std::string> byte_tokens()
{
    std::vector<std::string> printable;
    std::vector<std::string> others;
    for (unsigned byte = 0; byte < 256; ++byte) {
        bool const itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        if (itself)
            printable.push_back(utf8(byte));
        else
            others.push_back(utf8(256 + static_cast<unsigned>(others.size())));
    }
    printable.insert(printable.end(), others.begin(), others.end());
    return printable;
}

struct vocabulary {
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types; // 1 normal, 3 control
    std::vector<std::string> merges;
};

vocabulary make_vocabulary(std::uint32_t size)
{
    vocabulary v;
    v.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    v.types.assign(3, 3);
    for (std::string& token : byte_tokens())
        v.tokens.push_back(std::move(token));
    if (size < v.tokens.size()) throw std::invalid_argument("tiny_model: a vocabulary of fewer than 259 tokens");

    std::set<std::string> present(v.tokens.begin(), v.tokens.end());
    auto const merge = [&](std::string const& left, std::string const& right) {
        if (v.tokens.size() == size || !present.insert(left + right).second) return;
        v.merges.push_back(left + " " + right);
        v.tokens.push_back(left + right);
    };
    std::string const space = "\xc4\xa0"; // U+0120, the name of a space
    static constexpr std::pair<char const*, char const*> common[] = {
        {"h", "e"}, {"i", "n"},   {"r", "e"},  {"o", "n"},   {"e", "r"},    {"a", "t"},     {"o", "u"},   {"i", "s"},
        {"e", "n"}, {"l", "l"},   {"in", "g"}, {"th", "e"},  {"a", "n"},    {"an", "d"},    {"o", "r"},   {"s", "t"},
        {"u", "s"}, {"us", "er"}, {"s", "y"},  {"sy", "st"}, {"syst", "e"}, {"syste", "m"}, {"he", "ll"}, {"hell", "o"},
    };
    merge(space, "t");
    merge(space, "a");
    merge("t", "h");
    merge(space, space);
    for (auto const& [left, right] : common)
        if (present.contains(left) && present.contains(right)) merge(left, right);
    if (present.contains("he")) merge(space + "t", "he");
    for (char a = 'a'; a <= 'z'; ++a)
        for (char b = 'a'; b <= 'z'; ++b)
            merge({a}, {b});
    for (char a = 'a'; a <= 'z'; ++a)
        for (char b = 'a'; b <= 'z'; ++b)
            for (char c = 'a'; c <= 'z'; ++c)
                merge({a, b}, {c});
    if (v.tokens.size() < size) throw std::invalid_argument("tiny_model: a vocabulary too large to invent");
    v.types.resize(v.tokens.size(), 1);
    return v;
}

constexpr char const* chat_template =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\nYou are a tiny model.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}";

} // namespace

gguf_writer tiny_model(tiny_model_options const& options)
{
    tiny_model_options const& o = options;
    std::uint32_t const head_dim = o.head_dim != 0 ? o.head_dim : o.width / o.heads;

    gguf_writer file;
    file.set("general.architecture", "llama");
    file.set("general.name", "tiny");
    file.set("llama.block_count", o.layers);
    file.set("llama.context_length", o.context);
    file.set("llama.embedding_length", o.width);
    file.set("llama.feed_forward_length", o.ffn);
    file.set("llama.attention.head_count", o.heads);
    file.set("llama.attention.head_count_kv", o.kv_heads);
    file.set("llama.attention.layer_norm_rms_epsilon", o.epsilon);
    if (o.head_dim != 0) {
        file.set("llama.attention.key_length", head_dim);
        file.set("llama.attention.value_length", head_dim);
    }
    file.set("llama.rope.dimension_count", head_dim);
    file.set("llama.rope.freq_base", o.rope_base);
    file.set("llama.vocab_size", o.vocabulary);

    vocabulary const words = make_vocabulary(o.vocabulary);
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", "smollm");
    file.set("tokenizer.ggml.tokens", words.tokens);
    file.set("tokenizer.ggml.token_type", words.types);
    file.set("tokenizer.ggml.merges", words.merges);
    file.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tiny_im_start));
    file.set("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tiny_im_end));
    file.set("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(tiny_end_of_text));
    file.set("tokenizer.ggml.add_bos_token", false);
    file.set("tokenizer.ggml.add_space_prefix", false);
    file.set("tokenizer.chat_template", chat_template);

    random_values random(o.seed);
    auto const matrix = [&](std::string const& name, std::uint32_t cols, std::uint32_t rows, float deviation) {
        auto const chosen = o.types.find(name);
        ggml_type const type = chosen != o.types.end() ? chosen->second : o.weights;
        if (cols % layout(type).block != 0)
            throw std::invalid_argument("tiny_model: " + name + " needs a multiple of " +
                                        std::to_string(layout(type).block) + " columns");
        file.add(name, {cols, rows}, type, encode(type, random.uniform(std::uint64_t{cols} * rows, 0.0f, deviation)));
    };
    auto const norm = [&](std::string const& name) {
        file.add(name, {o.width}, ggml_type::f32, encode(ggml_type::f32, random.uniform(o.width, 1.0f, 0.1f)));
    };
    // A product of unit inputs has outputs of unit size with this deviation; only the logits are made larger.
    auto const unit = [](std::uint32_t cols) { return 1.0f / std::sqrt(static_cast<float>(cols)); };

    matrix("token_embd.weight", o.width, o.vocabulary, o.tied_output ? o.logit_spread * unit(o.width) : 1.0f);
    if (!o.rope_factors.empty())
        file.add("rope_freqs.weight", {o.rope_factors.size()}, ggml_type::f32, encode(ggml_type::f32, o.rope_factors));
    for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
        std::string const prefix = "blk." + std::to_string(layer) + ".";
        norm(prefix + "attn_norm.weight");
        matrix(prefix + "attn_q.weight", o.width, o.heads * head_dim, unit(o.width));
        matrix(prefix + "attn_k.weight", o.width, o.kv_heads * head_dim, unit(o.width));
        matrix(prefix + "attn_v.weight", o.width, o.kv_heads * head_dim, unit(o.width));
        matrix(prefix + "attn_output.weight", o.heads * head_dim, o.width, unit(o.heads * head_dim));
        norm(prefix + "ffn_norm.weight");
        matrix(prefix + "ffn_gate.weight", o.width, o.ffn, unit(o.width));
        matrix(prefix + "ffn_up.weight", o.width, o.ffn, unit(o.width));
        matrix(prefix + "ffn_down.weight", o.ffn, o.width, unit(o.ffn));
    }
    norm("output_norm.weight");
    if (!o.tied_output) matrix("output.weight", o.width, o.vocabulary, o.logit_spread * unit(o.width));
    return file;
}

std::vector<std::byte> tiny_model_bytes(tiny_model_options const& options)
{
    return tiny_model(options).bytes();
}

void write_tiny_model(std::filesystem::path const& path, tiny_model_options const& options)
{
    std::vector<std::byte> const bytes = tiny_model_bytes(options);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("tiny_model: cannot write " + path.string());
}

temporary_file::temporary_file(std::span<std::byte const> content, std::string_view suffix)
{
    std::string name = (std::filesystem::temp_directory_path() / "plait-XXXXXX").string() + std::string(suffix);
    int const descriptor = ::mkstemps(name.data(), static_cast<int>(suffix.size()));
    if (descriptor < 0) throw std::runtime_error("temporary_file: cannot create " + name);
    path_ = name;
    while (!content.empty()) {
        ::ssize_t const wrote = ::write(descriptor, content.data(), content.size());
        if (wrote <= 0) break;
        content = content.subspan(static_cast<std::size_t>(wrote));
    }
    ::close(descriptor);
    if (!content.empty()) {
        std::filesystem::remove(path_);
        throw std::runtime_error("temporary_file: cannot write " + name);
    }
}

temporary_file::~temporary_file()
{
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

} // namespace plait::test
