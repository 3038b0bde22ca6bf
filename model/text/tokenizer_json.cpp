// The reader of tokenizer.json. Sources of facts: the serialisation of Hugging Face's tokenizers library, version 0.23.
#include <plait/model/text/hub_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/hub_json.hpp>
#include <plait/model/text/model_builder.hpp>
#include <plait/model/text/pre_tokenizer.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

namespace plait {
namespace {

// One replacement may not make a text, or a vocabulary, much longer than it was.
constexpr std::size_t longest_replacement = 256;

// Characters that BERT calls punctuation: general category P, and those of ASCII that are symbols.
constexpr char const* punctuation = R"([\p{P}$+<=>^`|~])";

std::string base64_bytes(hub_value const& value)
{
    std::string out;
    unsigned bits = 0;
    unsigned count = 0;
    for (char const c : value.text()) {
        unsigned digit = 0;
        if (c >= 'A' && c <= 'Z') {
            digit = static_cast<unsigned>(c - 'A');
        } else if (c >= 'a' && c <= 'z') {
            digit = static_cast<unsigned>(c - 'a') + 26;
        } else if (c >= '0' && c <= '9') {
            digit = static_cast<unsigned>(c - '0') + 52;
        } else if (c == '+' || c == '/') {
            digit = c == '+' ? 62 : 63;
        } else if (c == '=') {
            break;
        } else {
            value.bad("not base64");
        }
        bits = (bits << 6 | digit) & 0xFFFFFF;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out.push_back(static_cast<char>(bits >> count & 0xFF));
        }
    }
    return out;
}

cut::behaviour read_behaviour(hub_value const& value)
{
    constexpr std::pair<std::string_view, cut::behaviour> names[] = {
        {"Isolated", cut::behaviour::isolated},          {"Removed", cut::behaviour::removed},
        {"Contiguous", cut::behaviour::contiguous},      {"MergedWithPrevious", cut::behaviour::merged_previous},
        {"MergedWithNext", cut::behaviour::merged_next},
    };
    for (auto const& [name, how] : names) {
        if (value.text() == name) return how;
    }
    value.unsupported();
}

class json_reader {
public:
    explicit json_reader(hub_value root)
        : root_(std::move(root))
    {
    }

    tokenizer_description run()
    {
        out_.fields = {.tokens = root_.path() + "model.vocab",
                       .types = root_.path() + "model.vocab",
                       .scores = root_.path() + "model.vocab",
                       .merges = root_.path() + "model.merges",
                       .added = root_.path() + "added_tokens"};
        out_.spell_added = true;
        out_.added_are_certain = true;
        if (auto const n = root_.find("normalizer")) normalizer(*n);
        if (auto const p = root_.find("pre_tokenizer")) cuts(*p);
        model(root_.at("model"));
        if (auto const a = root_.find("added_tokens")) added(*a);
        unknown();
        if (auto const d = root_.find("decoder")) decoder(*d);
        if (auto const p = root_.find("post_processor")) processor(*p);
        return std::move(out_);
    }

private:
    // ---- Vocabulary ----

    void put(std::int64_t id, std::string_view text, hub_value const& where)
    {
        // A file of a few bytes must not ask for a table of many: published vocabularies have few holes.
        auto const most = static_cast<std::int64_t>(2 * entries_ + 65536);
        if (id < 0 || id > most) where.bad("id " + std::to_string(id) + " of " + std::to_string(entries_) + " tokens");
        auto const at = static_cast<std::size_t>(id);
        if (at >= out_.tokens.size()) {
            out_.tokens.resize(at + 1);
            out_.types.resize(at + 1, token_type::unused);
        }
        if (!out_.tokens[at].empty() && out_.tokens[at] != text) {
            where.bad("id " + std::to_string(id) + " of two tokens");
        }
        out_.tokens[at] = text;
        if (out_.types[at] == token_type::unused) out_.types[at] = token_type::normal;
        ids_.emplace(text, id);
    }

    void model(hub_value const& m)
    {
        std::string kind = m.has("type") ? m.at("type").text() : "";
        if (kind.empty()) kind = m.has("merges") ? "BPE" : m.at("vocab").is_array() ? "Unigram" : "WordPiece";
        if (kind == "BPE") {
            bpe(m);
        } else if (kind == "Unigram") {
            unigram(m);
        } else {
            m.unsupported("type " + quote(kind));
        }
    }

    void bpe(hub_value const& m)
    {
        if (auto const d = m.find("dropout"); d && d->number() != 0) d->unsupported();
        if (auto const p = m.find("continuing_subword_prefix"); p && !p->text().empty()) p->unsupported();
        auto const vocab = m.at("vocab");
        entries_ = vocab.size();
        vocab.for_each_member([&](std::string const& text, hub_value const& id) { put(id.integer(), text, vocab); });
        bpe_model model{.from = byte_level_ ? bpe_model::symbols::bytes : bpe_model::symbols::characters,
                        .merges = {},
                        .whole_pieces_first = m.flag("ignore_merges", false),
                        .byte_fallback = m.flag("byte_fallback", false),
                        .fuse_unknown = m.flag("fuse_unk", false),
                        .end_of_word = m.has("end_of_word_suffix") ? m.at("end_of_word_suffix").text() : ""};
        if (byte_level_ && !model.end_of_word.empty()) m.at("end_of_word_suffix").unsupported("with ByteLevel");
        auto const merges = m.at("merges");
        model.merges.reserve(merges.size());
        merges.for_each([&](hub_value const& merge) {
            if (merge.is_array()) {
                if (merge.size() != 2) merge.bad("not two pieces");
                model.merges.emplace_back(merge.at(0).text(), merge.at(1).text());
                return;
            }
            auto const& text = merge.text();
            auto const space = text.find(' ');
            if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
                merge.bad("not two pieces");
            }
            model.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
        });
        if (model.byte_fallback && !byte_level_) mark_bytes();
        out_.model = std::move(model);
        if (auto const u = m.find("unk_token"); u && !u->text().empty()) {
            auto const found = ids_.find(u->text());
            if (found == ids_.end()) u->bad(quote(u->text()) + " is not in model.vocab");
            out_.unknown = found->second;
        }
    }

    void unigram(hub_value const& m)
    {
        if (byte_level_) m.at("type").unsupported("with ByteLevel");
        auto const vocab = m.at("vocab");
        entries_ = vocab.size();
        unigram_model model{.scores = {}, .byte_fallback = m.flag("byte_fallback", false)};
        model.scores.reserve(entries_);
        vocab.for_each([&](hub_value const& entry) {
            if (!entry.is_array() || entry.size() != 2) entry.bad("not a piece and its score");
            put(static_cast<std::int64_t>(model.scores.size()), entry.at(0).text(), entry);
            model.scores.push_back(entry.at(1).number());
        });
        if (model.byte_fallback) mark_bytes();
        scores_ = true;
        out_.model = std::move(model);
        if (auto const u = m.find("unk_id")) {
            if (u->integer() < 0 || static_cast<std::uint64_t>(u->integer()) >= entries_) {
                u->bad(std::to_string(u->integer()) + " is not in a vocabulary of " + std::to_string(entries_));
            }
            out_.unknown = u->integer();
        }
    }

    void mark_bytes()
    {
        for (std::size_t i = 0; i < out_.tokens.size(); ++i) {
            if (byte_token(out_.tokens[i])) out_.types[i] = token_type::byte;
        }
    }

    void added(hub_value const& list)
    {
        entries_ += list.size();
        list.for_each([&](hub_value const& entry) {
            auto const text = entry.at("content").text();
            auto const id = entry.at("id").integer();
            auto const known = ids_.find(text);
            if (known != ids_.end() && known->second != id) {
                entry.bad("id " + std::to_string(id) + ", but model.vocab has " + std::to_string(known->second));
            }
            put(id, text, entry);
            if (scores_) std::get<unigram_model>(out_.model).scores.resize(out_.tokens.size());
            auto const at = static_cast<std::size_t>(id);
            out_.types[at] = entry.flag("special", false) ? token_type::control : token_type::user_defined;
            out_.added.push_back({.id = static_cast<std::int32_t>(id),
                                  .text = text,
                                  .normalized = entry.flag("normalized", true),
                                  .single_word = entry.flag("single_word", false),
                                  .strip_left = entry.flag("lstrip", false),
                                  .strip_right = entry.flag("rstrip", false)});
        });
    }

    // The unknown token is never made from its name in a text.
    void unknown()
    {
        if (!out_.unknown) return;
        auto& type = out_.types[static_cast<std::size_t>(*out_.unknown)];
        if (type == token_type::normal) type = token_type::unknown;
    }

    // ---- Normalizer ----

    void normalizer(hub_value const& n)
    {
        auto const& kind = n.at("type").text();
        auto& steps = out_.normalizer;
        if (kind == "Sequence") {
            n.at("normalizers").for_each([&](hub_value const& part) { normalizer(part); });
        } else if (kind == "NFC" || kind == "NFD" || kind == "NFKC" || kind == "NFKD") {
            steps.emplace_back(kind == "NFC"    ? normal::form::nfc
                               : kind == "NFD"  ? normal::form::nfd
                               : kind == "NFKC" ? normal::form::nfkc
                                                : normal::form::nfkd);
        } else if (kind == "Lowercase") {
            steps.emplace_back(normal::lower{});
        } else if (kind == "StripAccents") {
            steps.emplace_back(normal::strip_marks{});
        } else if (kind == "Strip") {
            steps.emplace_back(normal::strip{.left = n.flag("strip_left", true), .right = n.flag("strip_right", true)});
        } else if (kind == "Prepend") {
            steps.emplace_back(normal::prepend{short_text(n.at("prepend"))});
        } else if (kind == "Replace") {
            bool is_regex = false;
            auto text = pattern(n.at("pattern"), is_regex);
            steps.emplace_back(
                normal::replace{.pattern = std::move(text), .is_regex = is_regex, .with = short_text(n.at("content"))});
        } else if (kind == "Precompiled") {
            auto const map = n.at("precompiled_charsmap");
            steps.emplace_back(normal::table{std::make_shared<charsmap const>(base64_bytes(map), map.path())});
        } else if (kind == "BertNormalizer") {
            bool const lower = n.flag("lowercase", true);
            steps.emplace_back(normal::bert{.clean = n.flag("clean_text", true),
                                            .space_han = n.flag("handle_chinese_chars", true),
                                            .strip_accents = n.flag("strip_accents", lower),
                                            .lower = lower});
        } else {
            n.unsupported("type " + quote(kind));
        }
    }

    static std::string short_text(hub_value const& value)
    {
        if (value.text().size() > longest_replacement) value.unsupported("longer than 256 bytes");
        return value.text();
    }

    // A pattern is {"String": text} or {"Regex": expression}.
    static std::string pattern(hub_value const& value, bool& is_regex)
    {
        is_regex = value.has("Regex");
        return value.at(is_regex ? "Regex" : "String").text();
    }

    // ---- Pre-tokenizer ----

    void cuts(hub_value const& p)
    {
        auto const& kind = p.at("type").text();
        if (kind == "Sequence") {
            p.at("pretokenizers").for_each([&](hub_value const& part) { cuts(part); });
        } else if (kind == "ByteLevel") {
            if (byte_level_) p.unsupported("a second ByteLevel");
            if (p.flag("add_prefix_space", true)) out_.cuts.emplace_back(cut::prefix_space{});
            if (p.flag("use_regex", true)) out_.cuts.emplace_back(cut::regex{.pattern = std::string(gpt2_expression)});
            byte_level_ = true; // what comes after sees the byte alphabet
        } else if (kind == "Split") {
            bool is_regex = false;
            auto const text = pattern(p.at("pattern"), is_regex);
            if (text.empty()) return;
            regex(is_regex ? text : escape_regex(text), read_behaviour(p.at("behavior")), p.flag("invert", false));
        } else if (kind == "Metaspace") {
            if (byte_level_) p.unsupported("after ByteLevel");
            cut::metaspace step{.mark = mark(p)};
            step.when = prefix(p);
            step.split = p.flag("split", true);
            out_.cuts.emplace_back(std::move(step));
        } else if (kind == "Digits") {
            regex(p.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
        } else if (kind == "Whitespace") {
            // \w and \s of Rust's regex library
            regex(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+)"
                  R"(|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}\s]+)",
                  cut::behaviour::removed, true);
        } else if (kind == "WhitespaceSplit") {
            regex(R"(\s+)", cut::behaviour::removed);
        } else if (kind == "Punctuation") {
            regex(punctuation, p.has("behavior") ? read_behaviour(p.at("behavior")) : cut::behaviour::isolated);
        } else if (kind == "CharDelimiterSplit") {
            regex(escape_regex(p.at("delimiter").text()), cut::behaviour::removed);
        } else if (kind == "BertPreTokenizer") {
            regex(R"(\s+)", cut::behaviour::removed);
            regex(punctuation);
        } else {
            p.unsupported("type " + quote(kind));
        }
    }

    void regex(std::string expression, cut::behaviour how = cut::behaviour::isolated, bool invert = false)
    {
        out_.cuts.emplace_back(
            cut::regex{.pattern = std::move(expression), .how = how, .invert = invert, .spelled = byte_level_});
    }

    static std::string mark(hub_value const& p)
    {
        auto const value = p.at("replacement");
        auto const& text = value.text();
        if (text.empty() || first_utf8(text).length != text.size()) value.bad("not one character");
        return text;
    }

    static cut::metaspace::prefix prefix(hub_value const& p)
    {
        using prefix = cut::metaspace::prefix;
        if (!p.has("prepend_scheme")) return p.flag("add_prefix_space", true) ? prefix::always : prefix::never;
        auto const value = p.at("prepend_scheme");
        if (value.text() == "always") return prefix::always;
        if (value.text() == "first") return prefix::first;
        if (value.text() == "never") return prefix::never;
        value.unsupported();
    }

    // ---- Decoder ----

    void decoder(hub_value const& d)
    {
        auto const& kind = d.at("type").text();
        auto& steps = out_.spelling;
        if (kind == "Sequence") {
            d.at("decoders").for_each([&](hub_value const& part) { decoder(part); });
        } else if (kind == "Fuse") {
            fused_ = true;
        } else if (kind == "Strip") {
            auto const text = d.at("content").text();
            auto const front = count(d.at("start")), back = count(d.at("stop"));
            if (!fused_) {
                steps.emplace_back(spelling::strip{.text = text, .front = front, .back = back});
                return;
            }
            if (front > 1 || back > 1) d.unsupported("more than one of a text");
            if (front == 1) out_.strip_front = text;
            if (back == 1) out_.strip_back = text;
        } else if (fused_) {
            d.unsupported("type " + quote(kind) + " after Fuse");
        } else if (kind == "ByteLevel") {
            steps.emplace_back(spelling::bytes{});
        } else if (kind == "ByteFallback") {
            steps.emplace_back(spelling::byte_fallback{});
        } else if (kind == "Metaspace") {
            steps.emplace_back(spelling::replace{.from = mark(d), .to = " "});
            if (prefix(d) != cut::metaspace::prefix::never) out_.strip_front = " ";
        } else if (kind == "Replace") {
            bool is_regex = false;
            auto text = pattern(d.at("pattern"), is_regex);
            if (is_regex) d.at("pattern").unsupported("a regular expression");
            steps.emplace_back(spelling::replace{.from = std::move(text), .to = short_text(d.at("content"))});
        } else if (kind == "BPEDecoder") {
            steps.emplace_back(spelling::suffix{.from = d.has("suffix") ? d.at("suffix").text() : "</w>", .to = " "});
            out_.strip_back = " ";
        } else {
            d.unsupported("type " + quote(kind));
        }
    }

    static std::size_t count(hub_value const& value)
    {
        if (value.integer() < 0 || value.integer() > 1000) value.bad("out of range");
        return static_cast<std::size_t>(value.integer());
    }

    // ---- Post-processor ----

    void processor(hub_value const& p)
    {
        auto const& kind = p.at("type").text();
        if (kind == "Sequence") {
            p.at("processors").for_each([&](hub_value const& part) { processor(part); });
        } else if (kind == "TemplateProcessing") {
            template_processing(p);
        } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
            out_.before.push_back(id(p.at("cls").at(1)));
            out_.after.push_back(id(p.at("sep").at(1)));
        } else if (kind != "ByteLevel") {
            p.unsupported("type " + quote(kind));
        }
    }

    void template_processing(hub_value const& p)
    {
        bool text = false;
        p.at("single").for_each([&](hub_value const& part) {
            if (part.has("Sequence")) {
                if (text) part.unsupported("a text twice");
                text = true;
                return;
            }
            auto const name = part.at("SpecialToken").at("id");
            auto const token = p.at("special_tokens").at(name.text());
            token.at("ids").for_each(
                [&](hub_value const& value) { (text ? out_.after : out_.before).push_back(id(value)); });
        });
    }

    std::int64_t id(hub_value const& value) const
    {
        auto const number = value.integer();
        if (number < 0 || static_cast<std::uint64_t>(number) >= out_.tokens.size()) {
            value.bad(std::to_string(number) + " is not in a vocabulary of " + std::to_string(out_.tokens.size()));
        }
        return number;
    }

    hub_value root_;
    tokenizer_description out_;
    std::unordered_map<std::string, std::int64_t> ids_;
    std::size_t entries_ = 0;
    bool byte_level_ = false, fused_ = false, scores_ = false;
};

} // namespace

tokenizer_description parse_tokenizer_json(std::string_view json, std::string const& source)
{
    hub_document const document(json, source);
    return json_reader(document.root()).run();
}

} // namespace plait
