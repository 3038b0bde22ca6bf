#include <plait/model/text/tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/added_tokens.hpp>
#include <plait/model/text/bpe.hpp>
#include <plait/model/text/gpt2_alphabet.hpp>
#include <plait/model/text/model_builder.hpp>
#include <plait/model/text/normalizer.hpp>
#include <plait/model/text/pre_tokenizer.hpp>
#include <plait/model/text/token_index.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>

namespace plait {
namespace {

constexpr std::size_t longest_text = std::size_t{1} << 31; // positions in a piece are 32-bit

[[noreturn]] void bad(std::string const& field, std::string const& what)
{
    throw error(errc::bad_file, field + ": " + what);
}

std::string item(std::string const& field, std::size_t index)
{
    return field + "[" + std::to_string(index) + "]";
}

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
    "<turn|>",               // Gemma 4
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

bool is_structure(token_type type) noexcept
{
    return type == token_type::control || type == token_type::unknown;
}

void replace_all(std::string& text, std::string_view from, std::string_view to)
{
    if (from.empty() || text.find(from) == std::string::npos) return;
    std::string out;
    std::size_t begin = 0;
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
        out.append(text, begin, at - begin).append(to);
        begin = at + from.size();
    }
    text = out.append(text, begin);
}

std::string blank_text(std::string const& name)
{
    constexpr std::string_view start = "<|blank_", end = "|>";
    if (name == "<n>") return "\n";
    if (name == "<|tab|>") return "\t";
    if (!name.starts_with(start) || !name.ends_with(end) || name.size() > start.size() + end.size() + 2) return name;
    std::size_t count = 0;
    for (char const c : std::string_view(name).substr(start.size(), name.size() - start.size() - end.size())) {
        if (c < '0' || c > '9') return name;
        count = 10 * count + static_cast<std::size_t>(c - '0');
    }
    return count == 0 ? name : std::string(count, ' ');
}

// The bytes that a token stands for.
std::string spelled(std::string text, std::vector<spelling::step> const& steps, bool added)
{
    for (auto const& step : steps) {
        if (std::holds_alternative<spelling::bytes>(step)) {
            if (added) continue; // such tokens were added by hand, in plain text
            std::string bytes;
            append_gpt2_bytes(text, bytes);
            text = std::move(bytes);
        } else if (std::holds_alternative<spelling::byte_fallback>(step)) {
            if (auto const byte = byte_token(text)) text.assign(1, static_cast<char>(*byte));
        } else if (auto const* r = std::get_if<spelling::replace>(&step)) {
            replace_all(text, r->from, r->to);
        } else if (auto const* s = std::get_if<spelling::suffix>(&step)) {
            replace_all(text, s->from, s->to);
        } else if (auto const* t = std::get_if<spelling::strip>(&step)) {
            if (t->text.empty()) continue;
            for (std::size_t n = 0; n < t->front && text.starts_with(t->text); ++n)
                text.erase(0, t->text.size());
            for (std::size_t n = 0; n < t->back && text.ends_with(t->text); ++n)
                text.resize(text.size() - t->text.size());
        } else {
            text = blank_text(text);
        }
    }
    return text;
}

} // namespace

// ---- Building ----

// What turns the text between added tokens into ids.
class tokenizer::engine {
public:
    engine(tokenizer_description const& source, std::vector<token_type> const& types, token_index const& index,
           std::array<std::int32_t, 256> const& bytes)
        : normal(source.normalizer)
        , cuts(source.cuts)
        , model(make_token_model(source, types, index, bytes))
    {
    }

    normalizer normal;
    pre_tokenizer cuts;
    token_model model;
    std::vector<std::string> whole_texts;                     // see whole
    std::unordered_map<std::string_view, std::int32_t> whole; // pieces that are tokens, where the model prefers those
};

struct tokenizer::added {
    added_tokens tokens;
};

tokenizer::tokenizer(tokenizer_description const& source)
{
    read_tokens(source);
    read_special(source);
    token_index index(source.tokens);
    auto const add = [&](token_index& texts, std::size_t i) {
        auto const other = texts.add(static_cast<std::int32_t>(i));
        if (other < 0) return;
        bad(item(source.fields.tokens, i),
            "the same text as " + item(source.fields.tokens, static_cast<std::size_t>(other)));
    };
    // An empty one pads the vocabulary; no text encodes to it.
    for (std::size_t i = 0; i < size(); ++i) {
        if (!source.tokens[i].empty() && !is_structure(types_[i])) add(index, i);
    }
    // A marker may be called as a piece of text is ("sop" of ChatGLM2): the piece is what text and merges mean.
    {
        token_index markers(source.tokens);
        for (std::size_t i = 0; i < size(); ++i) {
            if (source.tokens[i].empty() || !is_structure(types_[i])) continue;
            add(markers, i);
            index.add(static_cast<std::int32_t>(i));
        }
    }
    // Bytes: a byte-level vocabulary's letters, or what other models write unknown characters with.
    std::array<std::int32_t, 256> bytes{};
    bytes.fill(-1);
    auto const* plain = std::get_if<bpe_model>(&source.model);
    bool const byte_level = plain != nullptr && plain->from == bpe_model::symbols::bytes;
    for (std::size_t i = 0; i < size(); ++i) {
        auto const id = static_cast<std::int32_t>(i);
        if (byte_level) {
            if (is_structure(types_[i]) || types_[i] == token_type::user_defined || piece(id).size() != 1) continue;
            bytes[static_cast<unsigned char>(piece(id).front())] = id;
        } else if (types_[i] == token_type::byte) {
            auto const byte = byte_token(source.tokens[i]);
            if (!byte) bad(item(source.fields.tokens, i), "a byte token that is none of <0x00> to <0xFF>");
            bytes[*byte] = id;
        }
    }
    for (unsigned b = 0x20; byte_level && b < 0x7F; ++b) {
        if (bytes[b] >= 0) continue;
        bad(source.fields.tokens, std::string("no token for the character '") + static_cast<char>(b) + "'");
    }
    for (std::size_t b = 0; b < 256; ++b)
        covered_[b] = !byte_level || bytes[b] >= 0;

    auto made = std::make_unique<engine>(source, types_, index, bytes);
    if (plain != nullptr && plain->whole_pieces_first) {
        made->whole_texts.reserve(size());
        for (std::size_t i = 0; i < size(); ++i) {
            auto const id = static_cast<std::int32_t>(i);
            auto const text = byte_level ? piece(id) : std::string_view(source.tokens[i]);
            if (types_[i] != token_type::normal || text.empty()) continue;
            made->whole.emplace(made->whole_texts.emplace_back(text), id);
        }
    }
    engine_ = std::move(made);
    read_added(source);
}

tokenizer::tokenizer(vocabulary const& source)
    : tokenizer(describe(source))
{
}

tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;
tokenizer::~tokenizer() = default;

void tokenizer::read_tokens(tokenizer_description const& source)
{
    std::size_t const count = source.tokens.size();
    if (count == 0) bad(source.fields.tokens, "empty");
    if (count > std::size_t{std::numeric_limits<std::int32_t>::max()}) bad(source.fields.tokens, "too many");
    if (source.types.size() != count) {
        bad(source.fields.types,
            std::to_string(source.types.size()) + " entries for " + std::to_string(count) + " tokens");
    }
    types_ = source.types;
    // A token that is found in normalised text stands for what it looks like there.
    std::unordered_map<std::size_t, std::string> rewritten;
    for (auto const& token : source.added) {
        if (!token.normalized || source.added_are_normal || source.normalizer.empty() || token.id < 0) continue;
        rewritten.emplace(static_cast<std::size_t>(token.id), token.text);
    }
    if (!rewritten.empty()) {
        normalizer const normal(source.normalizer);
        for (auto& [id, text] : rewritten)
            text = normal.apply(text);
    }
    offsets_.reserve(count + 1);
    offsets_.push_back(0);
    for (std::size_t i = 0; i < count; ++i) {
        auto const& token = source.tokens[i];
        if (!is_utf8(token)) bad(item(source.fields.tokens, i), "not UTF-8");
        bool const listed = types_[i] == token_type::user_defined || !source.added_are_certain;
        if (types_[i] != token_type::unused && listed && is_end_name(token)) types_[i] = token_type::control;
        bool const added = types_[i] == token_type::user_defined;
        bool const raw = is_structure(types_[i]) || (added && !source.spell_added);
        auto const found = rewritten.find(i);
        auto const bytes =
            raw ? token : spelled(found == rewritten.end() ? token : found->second, source.spelling, added);
        text_.insert(text_.end(), bytes.begin(), bytes.end());
        offsets_.push_back(text_.size());
    }
}

void tokenizer::read_special(tokenizer_description const& source)
{
    auto const check = [&](std::int64_t id) {
        if (id < 0 || static_cast<std::uint64_t>(id) >= size()) {
            bad(source.fields.tokens,
                "special token " + std::to_string(id) + " is not in a vocabulary of " + std::to_string(size()));
        }
        return static_cast<std::int32_t>(id);
    };
    if (source.bos) bos_ = check(*source.bos);
    if (source.eos) eos_ = check(*source.eos);
    auto const unknown = source.unknown ? check(*source.unknown) : -1;
    for (auto const id : source.before)
        before_.push_back(check(id));
    for (auto const id : source.after)
        after_.push_back(check(id));
    strip_front_ = source.strip_front;
    strip_back_ = source.strip_back;

    std::optional<std::int32_t> end, harmony_return, harmony_call;
    for (std::size_t i = 0; i < size(); ++i) {
        std::string_view const text = source.tokens[i];
        if (types_[i] != token_type::control || !is_end_name(text)) continue;
        auto const id = static_cast<std::int32_t>(i);
        end_of_generation_.push_back(id);
        if (text == "<|end|>") end = id;
        if (text == "<|return|>") harmony_return = id;
        if (text == "<|call|>") harmony_call = id;
    }
    if (end && harmony_return && harmony_call) std::erase(end_of_generation_, *end);
    if (eos_) end_of_generation_.push_back(*eos_);
    for (auto const id : source.ends)
        end_of_generation_.push_back(check(id));
    std::sort(end_of_generation_.begin(), end_of_generation_.end());
    auto const repeated = std::unique(end_of_generation_.begin(), end_of_generation_.end());
    end_of_generation_.erase(repeated, end_of_generation_.end());

    // What stands for unknown characters comes out of plain text, so it is no control token. Where a file lets it end
    // or begin a text as well, it stays one, and unknown characters are left out (see make_token_model).
    if (unknown >= 0 && types_[static_cast<std::size_t>(unknown)] == token_type::control && unknown != bos_ &&
        !ends_generation(unknown)) {
        types_[static_cast<std::size_t>(unknown)] = token_type::unknown;
    }
}

void tokenizer::read_added(tokenizer_description const& source)
{
    std::vector<bool> special(size()), listed(size());
    for (std::size_t i = 0; i < size(); ++i)
        special[i] = is_structure(types_[i]);
    std::vector<added_token> raw, normalized;
    auto const add = [&](added_token token) {
        if (token.text.size() > added_tokens::longest) {
            throw error(errc::unsupported, item(source.fields.added, static_cast<std::size_t>(token.id)) +
                                               ": an added token of " + std::to_string(token.text.size()) + " bytes");
        }
        (token.normalized ? normalized : raw).push_back(std::move(token));
    };
    for (auto token : source.added) {
        if (token.id < 0 || static_cast<std::size_t>(token.id) >= size()) {
            bad(source.fields.added,
                "token " + std::to_string(token.id) + " is not in a vocabulary of " + std::to_string(size()));
        }
        listed[static_cast<std::size_t>(token.id)] = true;
        if (token.normalized && !source.added_are_normal) token.text = engine_->normal.apply(token.text);
        add(std::move(token));
    }
    // A token that is known by its name to end a turn, though the file lists it as text.
    for (std::size_t i = 0; i < size(); ++i) {
        if (special[i] && !listed[i] && is_end_name(source.tokens[i])) {
            add({.id = static_cast<std::int32_t>(i), .text = source.tokens[i]});
        }
    }
    raw_ = std::make_unique<added>(added{added_tokens(raw, special)});
    normalized_ = std::make_unique<added>(added{added_tokens(normalized, special)});
}

// ---- Encoding ----

// One call of encode: the working memory, and the tokens of the pieces met so far.
class tokenizer::text_encoder {
public:
    text_encoder(tokenizer const& owner, std::size_t text_size, encode_options const& options)
        : owner_(owner)
        , options_(options)
        , cache_(text_size >= worth_caching ? cache_size : 0)
    {
    }

    void run(std::string_view text, std::vector<std::int32_t>& out)
    {
        auto const places = options_.parse_special && options_.trusted ? special_places(*options_.trusted)
                                                                       : special_places(options_.parse_special);
        cut_out(owner_.raw_->tokens, places, text, out, [&](std::string_view part, bool first) {
            // Rewritten text has lost its places: it may hold control tokens where all of it may.
            auto const begin = static_cast<std::size_t>(part.data() - text.data());
            normalize(part, special_places(places.allow(begin, begin + part.size())), first, out);
        });
    }

    std::uint64_t steps() const noexcept { return memory_.steps(); }

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

    // Gives the text between tokens to `each`, and the tokens to `out`.
    template<class F>
    void cut_out(added_tokens const& tokens, special_places const& special, std::string_view text,
                 std::vector<std::int32_t>& out, F each) const
    {
        std::size_t at = 0;
        while (!tokens.empty()) {
            auto const found = tokens.find(text, at, special);
            if (!found) break;
            if (found->begin > at) each(text.substr(at, found->begin - at), at == 0);
            out.push_back(found->id);
            at = found->end;
        }
        if (at < text.size()) each(text.substr(at), at == 0);
    }

    void normalize(std::string_view text, special_places const& special, bool first, std::vector<std::int32_t>& out)
    {
        if (!owner_.engine_->normal.is_identity()) {
            text = rewritten_.emplace_back(owner_.engine_->normal.apply(text));
            if (text.size() >= longest_text) throw error(errc::invalid_argument, "text: 2 GiB or more");
        }
        cut_out(owner_.normalized_->tokens, special, text, out,
                [&](std::string_view part, bool start) { plain(part, first && start, out); });
    }

    void plain(std::string_view text, bool first, std::vector<std::int32_t>& out)
    {
        pieces_.clear();
        owner_.engine_->cuts.split(text, pieces_, rewritten_, first);
        for (auto const piece : pieces_) {
            if (!owner_.engine_->model.marks_begin_words) {
                remember(piece, out);
                continue;
            }
            for_each_word(piece, [&](std::string_view part) { remember(part, out); });
        }
    }

    // Words that begin with U+2581, where no merge joins two of them: small pieces are quick, and they come again.
    template<class F>
    static void for_each_word(std::string_view text, F each)
    {
        constexpr std::string_view mark = "\u2581";
        std::size_t begin = 0;
        for (std::size_t at = 0;;) {
            while (text.substr(at).starts_with(mark)) // a run of marks is not cut
                at += mark.size();
            at = text.find(mark, at);
            if (at == std::string_view::npos) break;
            each(text.substr(begin, at - begin));
            begin = at;
        }
        each(text.substr(begin));
    }

    void remember(std::string_view piece, std::vector<std::int32_t>& out)
    {
        if (cache_.empty() || piece.size() > longest_cached) {
            encode(piece, out);
            return;
        }
        auto& entry = cache_[hash_bytes(piece) >> (64 - cache_bits)];
        std::size_t const at = out.size();
        if (entry.piece == piece) {
            out.resize(at + entry.count);
            std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(entry.at), entry.count,
                        out.begin() + static_cast<std::ptrdiff_t>(at));
            return;
        }
        encode(piece, out);
        entry = {piece, at, out.size() - at};
    }

    void encode(std::string_view piece, std::vector<std::int32_t>& out)
    {
        auto const& whole = owner_.engine_->whole;
        if (!whole.empty()) {
            if (auto const found = whole.find(piece); found != whole.end()) {
                out.push_back(found->second);
                return;
            }
        }
        owner_.engine_->model.encode(piece, out, memory_);
    }

    tokenizer const& owner_;
    encode_options options_;
    std::vector<cached> cache_;
    std::vector<std::string_view> pieces_;
    std::deque<std::string> rewritten_; // cached pieces are views into it
    token_model::scratch memory_;
};

std::vector<std::int32_t> tokenizer::encode(std::string_view text, encode_options options) const
{
    return encode(text, options, nullptr);
}

std::uint64_t tokenizer::encoding_steps(std::string_view text) const
{
    std::uint64_t steps = 0;
    encode(text, {}, &steps);
    return steps;
}

std::vector<std::int32_t> tokenizer::encode(std::string_view text, encode_options options, std::uint64_t* steps) const
{
    // U+FFFD is three bytes where one may have been.
    if (text.size() >= longest_text) throw error(errc::invalid_argument, "text: 2 GiB or more");
    std::string repaired;
    if (!is_utf8(text)) {
        repaired = replace_invalid_utf8(text);
        text = repaired;
        if (options.trusted) options.trusted.emplace(); // those are numbers of another text
        if (text.size() >= longest_text) throw error(errc::invalid_argument, "text: 2 GiB or more");
    }

    std::vector<std::int32_t> out;
    out.reserve(text.size() / 4 + 2);
    if (options.add_special) out.insert(out.end(), before_.begin(), before_.end());
    text_encoder encoder(*this, text.size(), options);
    encoder.run(text, out);
    if (options.add_special) out.insert(out.end(), after_.begin(), after_.end());
    if (steps != nullptr) *steps = encoder.steps();
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
    if (!strip_front_.empty() && out.starts_with(strip_front_)) out.erase(0, strip_front_.size());
    if (!strip_back_.empty() && out.ends_with(strip_back_)) out.resize(out.size() - strip_back_.size());
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
        if (is_structure(types_[i])) return static_cast<std::int32_t>(i);
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
    return is_structure(type(id));
}

bool tokenizer::ends_generation(std::int32_t id) const noexcept
{
    return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

} // namespace plait
