#include <plait/model/text/tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace plait {
namespace {

[[noreturn]] void bad(std::string const& field, std::string const& what)
{
    throw error(errc::bad_file, "tokenizer.ggml." + field + ": " + what);
}

std::string item(std::string const& field, std::size_t index)
{
    return field + "[" + std::to_string(index) + "]";
}

// The byte alphabet of GPT-2: printable bytes are themselves, the others U+0100 onwards in order of byte.
constexpr std::size_t alphabet_size = 256 + 68;

std::array<std::int16_t, alphabet_size> make_alphabet() noexcept
{
    std::array<std::int16_t, alphabet_size> byte_of{};
    byte_of.fill(-1);
    std::size_t next = 256;
    for (std::size_t b = 0; b < 256; ++b) {
        bool const printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        byte_of[printable ? b : next++] = static_cast<std::int16_t>(b);
    }
    return byte_of;
}

// Appends the bytes that `text` spells in the alphabet, or `text` itself where it has a character that is not in it:
// such tokens were added by hand.
void append_bytes(std::string_view text, std::vector<char>& out)
{
    static auto const byte_of = make_alphabet();
    std::size_t const start = out.size();
    for (std::size_t i = 0; i < text.size();) {
        auto const unit = first_utf8(text.substr(i));
        if (unit.value >= alphabet_size || byte_of[unit.value] < 0) {
            out.resize(start);
            out.insert(out.end(), text.begin(), text.end());
            return;
        }
        out.push_back(static_cast<char>(byte_of[unit.value]));
        i += unit.length;
    }
}

std::uint64_t hash(std::string_view bytes) noexcept
{
    std::uint64_t h = bytes.size();
    while (!bytes.empty()) {
        std::uint64_t word = 0;
        std::size_t const n = std::min<std::size_t>(8, bytes.size());
        std::memcpy(&word, bytes.data(), n);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
        bytes.remove_prefix(n);
    }
    return h * 0x9E3779B97F4A7C15u;
}

// Token texts to ids, while a tokenizer is built. A node-based map took more time than all the rest of building.
class text_index {
public:
    explicit text_index(std::vector<std::string> const& texts)
        : texts_(texts)
        , shift_(64u - static_cast<unsigned>(std::countr_zero(std::bit_ceil(2 * texts.size() + 2))))
        , entries_(std::size_t{1} << (64u - shift_))
    {
    }

    /// The id of `text`, or -1.
    std::int32_t find(std::string_view text) const noexcept { return entries_[slot(text, hash(text))].id; }

    /// Adds the text of `id`; returns the id that has this text already, or -1.
    std::int32_t add(std::int32_t id)
    {
        std::string_view const text = texts_[static_cast<std::size_t>(id)];
        auto const h = hash(text);
        auto& entry = entries_[slot(text, h)];
        if (entry.id >= 0) return entry.id;
        entry = {static_cast<std::uint32_t>(h), id};
        return -1;
    }

private:
    struct entry {
        std::uint32_t hash = 0; // its low half; the high half chose the slot
        std::int32_t id = -1;
    };

    std::size_t slot(std::string_view text, std::uint64_t h) const noexcept
    {
        std::size_t i = h >> shift_;
        while (entries_[i].id >= 0 && (entries_[i].hash != static_cast<std::uint32_t>(h) ||
                                       texts_[static_cast<std::size_t>(entries_[i].id)] != text)) {
            i = (i + 1) & (entries_.size() - 1);
        }
        return i;
    }

    std::vector<std::string> const& texts_;
    unsigned shift_;
    std::vector<entry> entries_;
};

// What published models call the tokens that end a turn, a message or a text.
constexpr std::string_view end_names[] = {
    "<|im_end|>",            // ChatML: Qwen, SmolLM, Yi
    "<|eot_id|>",            // Llama 3: end of turn
    "<|eom_id|>",            // Llama 3: end of message, before a tool answers
    "<|eot|>",               // Llama 4
    "<|eom|>",               // Llama 4
    "<|end|>",               // Phi-3
    "<|return|>",            // harmony: end of the answer
    "<|call|>",              // harmony: a tool must answer
    "<|endoftext|>",         // GPT-2, Qwen, GPT-NeoX
    "<|end_of_text|>",       // Llama 3 base, Granite
    "<end_of_turn>",         // Gemma
    "<end_of_utterance>",    // SmolVLM, Idefics
    "<|END_OF_TURN_TOKEN|>", // Command R
    "<｜end▁of▁sentence｜>", // DeepSeek
    "<|EOT|>",               // DeepSeek Coder
    "<EOT>",
    "_<EOT>", // CodeLlama, Refact
    "[EOT]",  // Kimi
};

bool is_end_name(std::string_view text) noexcept
{
    return std::find(std::begin(end_names), std::end(end_names), text) != std::end(end_names);
}

} // namespace

vocabulary read_vocabulary(gguf_file const& file)
{
    std::string const prefix = "tokenizer.ggml.";
    vocabulary v;
    v.model = file.string(prefix + "model");
    v.pre = file.string(prefix + "pre", "");
    auto const texts = [&](char const* key) {
        auto const views = file.strings(prefix + key);
        return std::vector<std::string>(views.begin(), views.end());
    };
    v.tokens = texts("tokens");
    if (file.has(prefix + "token_type")) v.types = file.i32s(prefix + "token_type");
    if (file.has(prefix + "merges")) v.merges = texts("merges");
    auto const id = [&](char const* key, std::optional<std::int64_t>& out) {
        if (file.has(prefix + key)) out = file.u32(prefix + key);
    };
    id("bos_token_id", v.bos);
    id("eos_token_id", v.eos);
    id("eot_token_id", v.end_of_turn);
    id("eom_token_id", v.end_of_message);
    id("unknown_token_id", v.unknown);
    id("padding_token_id", v.padding);
    auto const flag = [&](char const* key, std::optional<bool>& out) {
        if (file.has(prefix + key)) out = file.boolean(prefix + key);
    };
    flag("add_bos_token", v.add_bos);
    flag("add_eos_token", v.add_eos);
    return v;
}

// ---- Building ----

tokenizer::tokenizer(vocabulary const& source)
    : pre_([&] {
        if (source.model != "gpt2") {
            throw error(errc::unsupported, "tokenizer.ggml.model: " + quote(source.model));
        }
        return source.pre.empty() ? std::string_view("default") : std::string_view(source.pre);
    }())
{
    if (source.tokens.empty()) bad("tokens", "empty");
    if (source.tokens.size() > std::size_t{std::numeric_limits<std::int32_t>::max()}) bad("tokens", "too many");
    read_types(source);
    read_special(source);
    read_pieces(source);
    read_merges(source);
}

void tokenizer::read_types(vocabulary const& source)
{
    std::size_t const count = source.tokens.size();
    if (!source.types.empty() && source.types.size() != count) {
        bad("token_type", std::to_string(source.types.size()) + " entries for " + std::to_string(count) + " tokens");
    }
    types_.assign(count, token_type::normal);
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_utf8(source.tokens[i])) bad(item("tokens", i), "not UTF-8");
        if (source.types.empty()) continue;
        auto const type = source.types[i];
        if (type < 1 || type > 6) bad(item("token_type", i), "unknown type " + std::to_string(type));
        types_[i] = static_cast<token_type>(type);
    }
}

void tokenizer::read_special(vocabulary const& source)
{
    auto const check = [&](char const* field, std::optional<std::int64_t> const& id) -> std::optional<std::int32_t> {
        if (!id) return std::nullopt;
        if (*id < 0 || static_cast<std::uint64_t>(*id) >= size()) {
            bad(field, std::to_string(*id) + " is not in a vocabulary of " + std::to_string(size()));
        }
        return static_cast<std::int32_t>(*id);
    };
    bos_ = check("bos_token_id", source.bos);
    eos_ = check("eos_token_id", source.eos);
    check("unknown_token_id", source.unknown);
    check("padding_token_id", source.padding);
    if (source.add_bos == true && !bos_) bad("add_bos_token", "true without a bos_token_id");
    if (source.add_eos == true && !eos_) bad("add_eos_token", "true without an eos_token_id");
    add_bos_ = source.add_bos.value_or(pre_.adds_bos() && bos_);
    add_eos_ = source.add_eos.value_or(false);

    std::optional<std::int32_t> end, harmony_return, harmony_call;
    for (std::size_t i = 0; i < size(); ++i) {
        std::string_view const text = source.tokens[i];
        if (types_[i] == token_type::unused || !is_end_name(text)) continue;
        auto const id = static_cast<std::int32_t>(i);
        types_[i] = token_type::control;
        end_of_generation_.push_back(id);
        if (text == "<|end|>") end = id;
        if (text == "<|return|>") harmony_return = id;
        if (text == "<|call|>") harmony_call = id;
    }
    if (end && harmony_return && harmony_call) std::erase(end_of_generation_, *end);
    for (auto const& id :
         {eos_, check("eot_token_id", source.end_of_turn), check("eom_token_id", source.end_of_message)}) {
        if (id) end_of_generation_.push_back(*id);
    }
    std::sort(end_of_generation_.begin(), end_of_generation_.end());
    auto const repeated = std::unique(end_of_generation_.begin(), end_of_generation_.end());
    end_of_generation_.erase(repeated, end_of_generation_.end());
}

void tokenizer::read_pieces(vocabulary const& source)
{
    bytes_.fill(-1);
    offsets_.reserve(size() + 1);
    offsets_.push_back(0);
    for (std::size_t i = 0; i < size(); ++i) {
        std::string_view const text = source.tokens[i];
        auto const id = static_cast<std::int32_t>(i);
        switch (types_[i]) {
        case token_type::unknown:
        case token_type::control:
        case token_type::user_defined: {
            text_.insert(text_.end(), text.begin(), text.end());
            if (text.empty()) break;
            added_first_[static_cast<unsigned char>(text.front())] = true;
            auto const node = added_.add(text);
            added_id_.resize(added_.size(), -1);
            added_id_[node] = id;
            break;
        }
        case token_type::normal:
        case token_type::byte:
        case token_type::unused:
            append_bytes(text, text_);
            if (text_.size() == offsets_.back() + 1) bytes_[static_cast<unsigned char>(text_.back())] = id;
        }
        offsets_.push_back(text_.size());
    }
    added_id_.resize(added_.size(), -1);
    for (unsigned b = 0x20; b < 0x7F; ++b) {
        if (!covers(static_cast<unsigned char>(b))) {
            bad("tokens", std::string("no token for the character '") + static_cast<char>(b) + "'");
        }
    }
    if (!pre_.whole_pieces_first()) return;
    for (std::size_t i = 0; i < size(); ++i) {
        auto const id = static_cast<std::int32_t>(i);
        if (types_[i] == token_type::normal && !piece(id).empty()) whole_.emplace(piece(id), id);
    }
}

void tokenizer::read_merges(vocabulary const& source)
{
    text_index ids(source.tokens);
    for (std::size_t i = 0; i < size(); ++i) {
        if (source.tokens[i].empty()) continue; // padding of the vocabulary; no text encodes to it
        auto const other = ids.add(static_cast<std::int32_t>(i));
        if (other >= 0) bad(item("tokens", i), "the same text as " + item("tokens", static_cast<std::size_t>(other)));
    }

    std::vector<bpe::merge> merges;
    merges.reserve(source.merges.size());
    std::string product;
    for (std::size_t i = 0; i < source.merges.size(); ++i) {
        std::string_view const text = source.merges[i];
        // A piece may start with a space only where the vocabulary is not in the byte alphabet; the space that
        // separates is never the first character.
        auto const space = text.find(' ', 1);
        if (space == std::string_view::npos || space + 1 == text.size()) bad(item("merges", i), "not two pieces");
        product.assign(text.substr(0, space)).append(text.substr(space + 1));
        bpe::merge m{};
        auto const look_up = [&](std::string_view piece, std::int32_t& id) {
            id = ids.find(piece);
            if (id < 0) bad(item("merges", i), quote(piece) + " is not in tokenizer.ggml.tokens");
        };
        look_up(text.substr(0, space), m.left);
        look_up(text.substr(space + 1), m.right);
        look_up(product, m.product);
        // Plain text must never become a control token.
        if (is_special(m.left) || is_special(m.right) || is_special(m.product)) continue;
        merges.push_back(m);
    }
    bpe_.emplace(bytes_, merges);
}

// ---- Encoding ----

// One call of encode: the working memory, and the tokens of the pieces met so far.
class tokenizer::text_encoder {
public:
    text_encoder(tokenizer const& owner, std::size_t text_size)
        : owner_(owner)
        , cache_(text_size >= worth_caching ? cache_size : 0)
    {
    }

    void plain(std::string_view text, std::vector<std::int32_t>& out)
    {
        pieces_.clear();
        owner_.pre_.split(text, pieces_);
        for (auto const piece : pieces_) {
            if (cache_.empty() || piece.size() > longest_cached) {
                encode(piece, out);
                continue;
            }
            auto& entry = cache_[hash(piece) >> (64 - cache_bits)];
            if (entry.piece == piece) {
                std::size_t const at = out.size();
                out.resize(at + entry.count);
                std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(entry.at), entry.count,
                            out.begin() + static_cast<std::ptrdiff_t>(at));
                continue;
            }
            std::size_t const at = out.size();
            encode(piece, out);
            entry = {piece, at, out.size() - at};
        }
    }

private:
    static constexpr std::size_t worth_caching = 4096;
    static constexpr unsigned cache_bits = 12;
    static constexpr std::size_t cache_size = std::size_t{1} << cache_bits;
    static constexpr std::size_t longest_cached = 32;

    // A piece of this text and where its tokens lie in the output. A hash's last piece is kept.
    struct cached {
        std::string_view piece;
        std::size_t at = 0, count = 0;
    };

    void encode(std::string_view piece, std::vector<std::int32_t>& out)
    {
        if (!owner_.whole_.empty()) {
            if (auto const found = owner_.whole_.find(piece); found != owner_.whole_.end()) {
                out.push_back(found->second);
                return;
            }
        }
        owner_.bpe_->encode(piece, out, memory_);
    }

    tokenizer const& owner_;
    std::vector<cached> cache_;
    std::vector<std::string_view> pieces_;
    bpe::scratch memory_;
};

std::vector<std::int32_t> tokenizer::encode(std::string_view text, encode_options options) const
{
    // Positions in a piece are 32-bit, and U+FFFD is three bytes where one may have been.
    if (text.size() >= std::size_t{1} << 31) throw error(errc::invalid_argument, "text: 2 GiB or more");
    std::string repaired;
    if (!is_utf8(text)) {
        repaired = replace_invalid_utf8(text);
        text = repaired;
        if (text.size() >= std::size_t{1} << 31) throw error(errc::invalid_argument, "text: 2 GiB or more");
    }

    std::vector<std::int32_t> out;
    out.reserve(text.size() / 4 + 2);
    if (options.add_special && add_bos_) out.push_back(*bos_);
    text_encoder encoder(*this, text.size());
    std::size_t plain = 0; // start of the text not yet encoded
    for (std::size_t i = 0; i < text.size();) {
        if (!added_first_[static_cast<unsigned char>(text[i])]) {
            ++i;
            continue;
        }
        std::int32_t longest = -1;
        std::size_t end = i;
        auto node = byte_trie::index{0};
        for (std::size_t j = i; j < text.size(); ++j) {
            node = added_.child(node, text[j]);
            if (node == byte_trie::none) break;
            auto const id = added_id_[node];
            if (id < 0 || (!options.parse_special && is_special(id))) continue;
            longest = id;
            end = j + 1;
        }
        if (longest < 0) {
            ++i;
            continue;
        }
        encoder.plain(text.substr(plain, i - plain), out);
        out.push_back(longest);
        plain = i = end;
    }
    encoder.plain(text.substr(plain), out);
    if (options.add_special && add_eos_) out.push_back(*eos_);
    return out;
}

// ---- Decoding ----

std::size_t tokenizer::checked(std::int32_t id) const
{
    if (id < 0 || static_cast<std::size_t>(id) >= size()) {
        throw error(errc::invalid_argument,
                    "token " + std::to_string(id) + " is not in a vocabulary of " + std::to_string(size()));
    }
    return static_cast<std::size_t>(id);
}

std::string tokenizer::decode(std::span<std::int32_t const> ids, decode_options options) const
{
    std::string out;
    out.reserve(4 * ids.size());
    for (auto const id : ids) {
        auto const bytes = piece(id);
        if (!options.skip_special || !is_special(id)) out += bytes;
    }
    return out;
}

std::string_view tokenizer::piece(std::int32_t id) const
{
    auto const i = checked(id);
    return {text_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
}

std::optional<std::int32_t> tokenizer::find(std::string_view text) const noexcept
{
    std::optional<std::int32_t> found;
    for (std::size_t i = 0; i < size(); ++i) {
        if (std::string_view(text_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]) != text) continue;
        bool const special = types_[i] == token_type::control || types_[i] == token_type::unknown;
        if (special) return static_cast<std::int32_t>(i);
        if (!found) found = static_cast<std::int32_t>(i);
    }
    return found;
}

token_type tokenizer::type(std::int32_t id) const
{
    return types_[checked(id)];
}

bool tokenizer::is_special(std::int32_t id) const
{
    auto const t = type(id);
    return t == token_type::control || t == token_type::unknown;
}

bool tokenizer::ends_generation(std::int32_t id) const noexcept
{
    return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

} // namespace plait
