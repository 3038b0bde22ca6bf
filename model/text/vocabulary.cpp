#include <plait/model/text/vocabulary.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/pre_tokenizer.hpp>
#include <plait/model/text/quote.hpp>

#include <limits>
#include <string_view>

namespace plait {
namespace {

std::string const prefix = "tokenizer.ggml.";
std::string const own_prefix = "tokenizer.plait.";

[[noreturn]] void bad(std::string const& field, std::string const& what)
{
    throw error(errc::bad_file, prefix + field + ": " + what);
}

std::string item(std::string const& field, std::size_t index)
{
    return field + "[" + std::to_string(index) + "]";
}

std::string entries(std::size_t count, std::size_t tokens)
{
    return std::to_string(count) + " entries for " + std::to_string(tokens) + " tokens";
}

std::string read_bytes(gguf_file const& file, std::string const& key)
{
    auto const* entry = file.find_entry(key);
    if (entry->type != gguf_type::array || (entry->element != gguf_type::u8 && entry->element != gguf_type::i8)) {
        throw error(errc::bad_file, key + ": not an array of bytes");
    }
    return {reinterpret_cast<char const*>(entry->payload.data()), entry->payload.size()};
}

// The parts of a description that depend on the model.
class describer {
public:
    describer(vocabulary const& source, tokenizer_description& out)
        : source_(source)
        , out_(out)
    {
    }

    void run()
    {
        if (source_.model == "gpt2") return byte_level();
        if (source_.model == "llama") return sentencepiece_bpe();
        if (source_.model == "t5") return sentencepiece_unigram();
        if (source_.model == "gemma4") return character_bpe();
        if (source_.model == "gpt1") return gpt1();
        throw error(errc::unsupported, prefix + "model: " + quote(source_.model));
    }

    bool adds_bos = false, adds_eos = false;       // where the file does not say
    std::optional<std::int64_t> bos, eos, unknown; // the same

private:
    void byte_level()
    {
        auto rule = find_pre_tokenizer_rule(source_.pre.empty() ? std::string_view("default") : source_.pre);
        out_.cuts = std::move(rule.cuts);
        adds_bos = rule.adds_bos;
        out_.model = bpe_model{.from = bpe_model::symbols::bytes,
                               .merges = merges(),
                               .whole_pieces_first = rule.whole_pieces_first,
                               .end_of_word = {}};
        out_.spelling = {spelling::bytes{}};
    }

    void sentencepiece_bpe()
    {
        bool const space = source_.add_space_prefix.value_or(true);
        if (!source_.space_prefix.empty()) {
            add_metaspace();
        } else {
            if (space) out_.normalizer.emplace_back(normal::prepend{" "});
            out_.normalizer.emplace_back(normal::replace{.pattern = " ", .with = "\u2581"});
        }
        out_.model = sentencepiece_bpe_model{.scores = scores()};
        spell_spaces();
        if (source_.normalized_symbols) find_symbols_late();
        if (space) out_.strip_front = " ";
        adds_bos = true;
        bos = known(1, token_type::control);
        eos = known(2, token_type::control);
        unknown = known(0, token_type::unknown);
        // Phi-3's markers take the line feed after them (its tokenizer.json: "rstrip").
        for (auto& token : out_.added) {
            bool const outer = token.text == "<s>" || token.text == "<unk>" || token.text == "<|endoftext|>";
            token.strip_right = source_.architecture == "phi3" && !outer;
        }
    }

    void add_metaspace()
    {
        cut::metaspace step;
        step.split = false;
        if (source_.space_prefix == "first")
            step.when = cut::metaspace::prefix::first;
        else if (source_.space_prefix != "always")
            throw error(errc::unsupported, own_prefix + "space_prefix: " + quote(source_.space_prefix));
        out_.cuts.emplace_back(std::move(step));
    }

    /// As SentencePiece's own library does it.
    void find_symbols_late()
    {
        for (auto& token : out_.added) {
            auto const id = static_cast<std::size_t>(token.id);
            if (out_.types[id] != token_type::user_defined) continue;
            token.normalized = true;
            auto& text = out_.tokens[id];
            for (auto at = text.find(' '); at != text.npos; at = text.find(' ', at))
                text.replace(at, 1, "\u2581");
            token.text = text;
        }
        out_.added_are_normal = true;
        out_.spell_added = true;
    }

    void sentencepiece_unigram()
    {
        normal::sentencepiece how;
        if (!source_.charsmap.empty()) {
            how.map = std::make_shared<charsmap const>(source_.charsmap, prefix + "precompiled_charsmap");
        }
        how.add_prefix = source_.add_space_prefix.value_or(false);
        how.remove_extra_spaces = source_.remove_extra_spaces.value_or(false);
        if (how.add_prefix) out_.strip_front = " ";
        out_.normalizer.emplace_back(std::move(how));
        auto const given = scores();
        out_.model = unigram_model{.scores = std::vector<double>(given.begin(), given.end()),
                                   .single_precision = source_.single_precision};
        spell_spaces();
        adds_eos = true;
        eos = known(1, token_type::control);
        unknown = known(2, token_type::unknown);
    }

    // Gemma 4's, which Hugging Face's file describes as Replace(" " by U+2581) and BPE with byte_fallback.
    void character_bpe()
    {
        out_.normalizer.emplace_back(normal::replace{.pattern = " ", .with = "\u2581"});
        out_.cuts = {cut::regex{.pattern = R"([^\n]+|[\n]+)"}};
        out_.model = bpe_model{.from = bpe_model::symbols::characters,
                               .merges = merges(),
                               .byte_fallback = true,
                               .fuse_unknown = true,
                               .end_of_word = {}};
        spell_spaces();
        adds_bos = true;
    }

    // As Hugging Face's OpenAIGPTTokenizer does it: BERT's cleaning and words, then characters.
    void gpt1()
    {
        out_.normalizer = {normal::bert{}};
        out_.cuts = {cut::regex{.pattern = R"(\s+)", .how = cut::behaviour::removed},
                     cut::regex{.pattern = R"([\p{P}$+<=>^`|~])"}};
        out_.model = bpe_model{.from = bpe_model::symbols::characters, .merges = merges(), .end_of_word = "</w>"};
        out_.spelling = {spelling::suffix{.from = "</w>", .to = " "}};
        out_.strip_back = " ";
    }

    void spell_spaces() { out_.spelling = {spelling::byte_fallback{}, spelling::replace{.from = "\u2581", .to = " "}}; }

    std::vector<float> scores() const
    {
        if (source_.scores.size() != source_.tokens.size()) {
            bad("scores", entries(source_.scores.size(), source_.tokens.size()));
        }
        return source_.scores;
    }

    std::vector<std::pair<std::string, std::string>> merges() const
    {
        std::vector<std::pair<std::string, std::string>> out;
        out.reserve(source_.merges.size());
        for (std::size_t i = 0; i < source_.merges.size(); ++i) {
            std::string_view const text = source_.merges[i];
            // A piece may start with a space only where the vocabulary is not in the byte alphabet; the space that
            // separates is never the first character.
            auto const space = text.find(' ', 1);
            if (space == std::string_view::npos || space + 1 == text.size()) bad(item("merges", i), "not two pieces");
            out.emplace_back(text.substr(0, space), text.substr(space + 1));
        }
        return out;
    }

    // What a file that does not say means by an id, where the token is of that kind.
    std::optional<std::int64_t> known(std::size_t id, token_type type) const
    {
        if (id < out_.types.size() && out_.types[id] == type) return static_cast<std::int64_t>(id);
        return std::nullopt;
    }

    vocabulary const& source_;
    tokenizer_description& out_;
};

} // namespace

vocabulary read_vocabulary(gguf_file const& file)
{
    vocabulary v;
    v.model = file.string(prefix + "model");
    v.pre = file.string(prefix + "pre", "");
    v.architecture = file.string("general.architecture", "");
    auto const texts = [&](char const* key) {
        auto const views = file.strings(prefix + key);
        return std::vector<std::string>(views.begin(), views.end());
    };
    v.tokens = texts("tokens");
    if (file.has(prefix + "token_type")) v.types = file.i32s(prefix + "token_type");
    if (file.has(prefix + "scores")) v.scores = file.f32s(prefix + "scores");
    if (file.has(prefix + "merges")) v.merges = texts("merges");
    if (file.has(prefix + "precompiled_charsmap")) v.charsmap = read_bytes(file, prefix + "precompiled_charsmap");
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
    flag("add_space_prefix", v.add_space_prefix);
    flag("remove_extra_whitespaces", v.remove_extra_spaces);
    if (file.has(own_prefix + "before")) v.before = file.i32s(own_prefix + "before");
    if (file.has(own_prefix + "after")) v.after = file.i32s(own_prefix + "after");
    v.space_prefix = file.string(own_prefix + "space_prefix", "");
    v.single_precision = file.boolean(own_prefix + "single_precision", false);
    v.normalized_symbols = file.boolean(own_prefix + "normalized_symbols", false);
    return v;
}

tokenizer_description describe(vocabulary const& source)
{
    std::size_t const count = source.tokens.size();
    if (count == 0) bad("tokens", "empty");
    if (count > std::size_t{std::numeric_limits<std::int32_t>::max()}) bad("tokens", "too many");
    if (!source.types.empty() && source.types.size() != count) bad("token_type", entries(source.types.size(), count));

    tokenizer_description out;
    out.fields = {.tokens = prefix + "tokens",
                  .types = prefix + "token_type",
                  .scores = prefix + "scores",
                  .merges = prefix + "merges",
                  .added = prefix + "tokens"};
    out.tokens = source.tokens;
    out.types.assign(count, token_type::normal);
    for (std::size_t i = 0; i < source.types.size(); ++i) {
        auto const type = source.types[i];
        if (type < 1 || type > 6) bad(item("token_type", i), "unknown type " + std::to_string(type));
        out.types[i] = static_cast<token_type>(type);
    }
    for (std::size_t i = 0; i < count; ++i) {
        auto const type = out.types[i];
        if (type != token_type::control && type != token_type::unknown && type != token_type::user_defined) continue;
        out.added.push_back({.id = static_cast<std::int32_t>(i), .text = out.tokens[i]});
    }

    auto const check = [&](char const* field, std::optional<std::int64_t> const& id) {
        if (id && (*id < 0 || static_cast<std::uint64_t>(*id) >= count)) {
            bad(field, std::to_string(*id) + " is not in a vocabulary of " + std::to_string(count));
        }
        return id;
    };
    out.bos = check("bos_token_id", source.bos);
    out.eos = check("eos_token_id", source.eos);
    out.unknown = check("unknown_token_id", source.unknown);
    check("padding_token_id", source.padding);
    for (auto const& id : {check("eot_token_id", source.end_of_turn), check("eom_token_id", source.end_of_message)}) {
        if (id) out.ends.push_back(*id);
    }

    describer model(source, out);
    model.run();
    if (!out.bos) out.bos = model.bos;
    if (!out.eos) out.eos = model.eos;
    if (!out.unknown) out.unknown = model.unknown;
    if (source.add_bos == true && !out.bos) bad("add_bos_token", "true without a bos_token_id");
    if (source.add_eos == true && !out.eos) bad("add_eos_token", "true without an eos_token_id");
    if (out.bos && source.add_bos.value_or(model.adds_bos)) out.before.push_back(*out.bos);
    if (out.eos && source.add_eos.value_or(model.adds_eos)) out.after.push_back(*out.eos);
    auto const listed = [&](char const* field, std::optional<std::vector<std::int32_t>> const& ids,
                            std::vector<std::int64_t>& to) {
        if (!ids) return;
        to.assign(ids->begin(), ids->end());
        for (auto const id : to)
            if (id < 0 || static_cast<std::uint64_t>(id) >= count)
                throw error(errc::bad_file, own_prefix + field + ": " + std::to_string(id) +
                                                " is not in a vocabulary of " + std::to_string(count));
    };
    listed("before", source.before, out.before);
    listed("after", source.after, out.after);
    return out;
}

} // namespace plait
