#include <plait/model/text/hub_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/hub_json.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/sentencepiece_model.hpp>
#include <plait/model/text/vocabulary.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

namespace plait {
namespace {

namespace fs = std::filesystem;

// The largest published tokenizer.json has 33 MB.
constexpr std::uintmax_t largest_file = std::uintmax_t{512} << 20;

std::string read_file(fs::path const& path)
{
    std::error_code failure;
    auto const size = fs::file_size(path, failure);
    if (failure) throw error(errc::io, path.string() + ": " + failure.message());
    if (size > largest_file)
        throw error(errc::unsupported, path.string() + ": " + std::to_string(size) + " bytes; at most " +
                                           std::to_string(largest_file) + " are read");
    std::ifstream in(path, std::ios::binary);
    std::string out(static_cast<std::size_t>(size), '\0');
    if (!in.read(out.data(), static_cast<std::streamsize>(out.size()))) {
        throw error(errc::io, path.string() + ": can't be read");
    }
    return out;
}

std::optional<hub_document> read_json(fs::path const& path)
{
    if (!fs::is_regular_file(path)) return std::nullopt;
    return std::optional<hub_document>(std::in_place, read_file(path), path.string());
}

// ---- SentencePiece models ----

std::int64_t append(tokenizer_description& d, std::string text, token_type type)
{
    auto const id = static_cast<std::int64_t>(d.tokens.size());
    bool const listed = type == token_type::control || type == token_type::user_defined;
    if (listed) d.added.push_back({.id = static_cast<std::int32_t>(id), .text = text});
    d.tokens.push_back(std::move(text));
    d.types.push_back(type);
    if (auto* m = std::get_if<sentencepiece_bpe_model>(&d.model)) m->scores.resize(d.tokens.size());
    if (auto* m = std::get_if<unigram_model>(&d.model)) m->scores.resize(d.tokens.size());
    return id;
}

std::optional<std::int64_t> find_token(tokenizer_description const& d, std::string_view text)
{
    auto const found = std::find(d.tokens.begin(), d.tokens.end(), text);
    if (found == d.tokens.end()) return std::nullopt;
    return found - d.tokens.begin();
}

// ChatGLM-6B (tokenization_chatglm.py): blanks have names, and its markers come after the text.
void become_chatglm(tokenizer_description& d, std::string const& source)
{
    auto const marker = [&](std::string_view name) {
        auto const id = find_token(d, name);
        if (!id) throw error(errc::bad_file, source + ": no piece " + quote(name));
        auto& type = d.types[static_cast<std::size_t>(*id)];
        if (type == token_type::normal)
            d.added.push_back({.id = static_cast<std::int32_t>(*id), .text = std::string(name)});
        type = token_type::control;
        return *id;
    };
    for (auto const* name : {"[MASK]", "[sMASK]", "<pad>"}) {
        if (find_token(d, name)) marker(name);
    }
    d.after = {marker("[gMASK]"), marker("<sop>")};
    d.bos = d.after[1];
    d.eos = marker("<eop>");
    // A marker is cut out of the text itself, before its blanks are named.
    for (auto& token : d.added) {
        if (d.types[static_cast<std::size_t>(token.id)] == token_type::control) token.normalized = false;
    }
    d.normalizer.insert(d.normalizer.begin(), normal::blanks{});
    d.spelling.emplace_back(spelling::blanks{});
}

// ChatGLM2 and 3 (tokenization_chatglm.py): markers follow the pieces of the model and come before the text.
void become_chatglm2(tokenizer_description& d)
{
    append(d, "[MASK]", token_type::control);
    auto const gmask = append(d, "[gMASK]", token_type::control);
    append(d, "[sMASK]", token_type::control);
    auto const sop = append(d, "sop", token_type::control);
    append(d, "eop", token_type::control);
    append(d, "<|system|>", token_type::control);
    auto const user = append(d, "<|user|>", token_type::control);
    append(d, "<|assistant|>", token_type::control);
    auto const observation = append(d, "<|observation|>", token_type::control);
    d.before = {gmask, sop};
    d.after.clear();
    d.ends.insert(d.ends.end(), {user, observation});
}

// The tokens that a directory adds to those of its SentencePiece model.
void add_tokens(tokenizer_description& d, hub_value const& decoder)
{
    std::vector<std::pair<std::int64_t, hub_value>> entries;
    decoder.for_each_member([&](std::string const& key, hub_value const& entry) {
        if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos) {
            entry.bad("not named by an id");
        }
        entries.emplace_back(std::stoll(key), entry);
    });
    std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    for (auto const& [id, entry] : entries) {
        auto const text = entry.at("content").text();
        auto const type = entry.flag("special", false) ? token_type::control : token_type::user_defined;
        if (static_cast<std::size_t>(id) > d.tokens.size()) entry.bad("an id after a gap");
        if (static_cast<std::size_t>(id) == d.tokens.size()) {
            append(d, text, type);
        } else if (d.tokens[static_cast<std::size_t>(id)] != text) {
            entry.bad("the model has " + quote(d.tokens[static_cast<std::size_t>(id)]));
        } else if (d.types[static_cast<std::size_t>(id)] == token_type::normal) {
            d.types[static_cast<std::size_t>(id)] = type;
            d.added.push_back({.id = static_cast<std::int32_t>(id), .text = text});
        } else {
            continue;
        }
        auto& added = d.added.back();
        added.single_word = entry.flag("single_word", false);
        added.strip_left = entry.flag("lstrip", false);
        added.strip_right = entry.flag("rstrip", false);
    }
}

// ---- vocab.json and merges.txt ----

tokenizer_description read_pair(fs::path const& vocab_path, fs::path const& merges_path)
{
    hub_document const vocab(read_file(vocab_path), vocab_path.string());
    vocabulary v;
    auto const root = vocab.root();
    v.tokens.resize(root.size());
    bool words = false;
    root.for_each_member([&](std::string const& text, hub_value const& id) {
        auto const at = id.integer();
        if (at < 0 || static_cast<std::size_t>(at) >= v.tokens.size()) id.bad("an id that leaves a gap");
        v.tokens[static_cast<std::size_t>(at)] = text;
        words = words || text.ends_with("</w>");
    });
    auto const text = read_file(merges_path);
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        if (line.ends_with('\r')) line.pop_back();
        at = end + 1;
        if (!line.empty() && !line.starts_with("#version")) v.merges.push_back(std::move(line));
    }
    v.model = words ? "gpt1" : "gpt2";
    v.pre = words ? "" : "gpt-2";
    for (std::size_t i = 0; i < v.tokens.size(); ++i) {
        if (v.tokens[i] == "<unk>" && words) v.unknown = static_cast<std::int64_t>(i);
    }
    v.types.assign(v.tokens.size(), static_cast<std::int32_t>(token_type::normal));
    if (v.unknown) v.types[static_cast<std::size_t>(*v.unknown)] = static_cast<std::int32_t>(token_type::unknown);
    auto out = describe(v);
    out.fields = {.tokens = vocab_path.string(),
                  .types = vocab_path.string(),
                  .scores = vocab_path.string(),
                  .merges = merges_path.string(),
                  .added = vocab_path.string()};
    return out;
}

// ---- What stands beside a tokenizer ----

// A token's name: a string, or an object with one.
std::string token_name(hub_value const& value)
{
    return value.is_object() ? value.at("content").text() : value.text();
}

void name_special(tokenizer_description& d, hub_value const& config)
{
    auto const token = [&](char const* key, std::optional<std::int64_t>& out) {
        auto const value = config.find(key);
        if (!value) return;
        auto const name = token_name(*value);
        if (auto const id = name.empty() ? std::nullopt : find_token(d, name)) out = id;
    };
    token("bos_token", d.bos);
    token("eos_token", d.eos);
}

// Whether the begin and the end are added, where the configuration says so.
void set_added(tokenizer_description& d, hub_value const& config)
{
    if (auto const add = config.find("add_bos_token")) {
        bool const there = d.bos && !d.before.empty() && d.before.front() == *d.bos;
        if (add->boolean() && !d.bos) add->bad("true without a bos_token");
        if (add->boolean() && !there) d.before.insert(d.before.begin(), *d.bos);
        if (!add->boolean() && there) d.before.erase(d.before.begin());
    }
    if (auto const add = config.find("add_eos_token")) {
        bool const there = d.eos && !d.after.empty() && d.after.back() == *d.eos;
        if (add->boolean() && !d.eos) add->bad("true without an eos_token");
        if (add->boolean() && !there) d.after.push_back(*d.eos);
        if (!add->boolean() && there) d.after.pop_back();
    }
}

void read_ends(tokenizer_description& d, hub_value const& config)
{
    auto const value = config.find("eos_token_id");
    if (!value) return;
    auto const add = [&](hub_value const& id) {
        auto const number = id.integer();
        // Models with fewer tokens than their configuration says are published; such an id never comes out.
        if (number >= 0 && static_cast<std::uint64_t>(number) < d.tokens.size()) d.ends.push_back(number);
    };
    if (value->is_array()) {
        value->for_each(add);
    } else {
        add(*value);
    }
}

} // namespace

tokenizer_description read_tokenizer(fs::path const& directory)
{
    auto const is_file = [&](char const* name) { return fs::is_regular_file(directory / name); };
    auto const config = read_json(directory / "tokenizer_config.json");
    tokenizer_description out;
    bool named = true; // the files beside name the special tokens
    bool sentencepiece = false;
    if (is_file("tokenizer.json")) {
        auto const path = directory / "tokenizer.json";
        out = parse_tokenizer_json(read_file(path), path.string());
    } else if (is_file("ice_text.model")) {
        auto const path = directory / "ice_text.model";
        out = describe(sentencepiece_model::parse(read_file(path), path.string()), path.string());
        if (auto const images = config ? config->root().find("num_image_tokens") : std::nullopt;
            images && images->integer() != 0) {
            images->unsupported();
        }
        become_chatglm(out, path.string());
        named = false;
    } else if (is_file("tokenizer.model") || is_file("spiece.model")) {
        auto const path = directory / (is_file("tokenizer.model") ? "tokenizer.model" : "spiece.model");
        out = describe(sentencepiece_model::parse(read_file(path), path.string()), path.string());
        auto const kind = config ? config->root().find("tokenizer_class") : std::nullopt;
        if (kind && kind->text() == "ChatGLMTokenizer") {
            become_chatglm2(out);
            named = false;
        } else if (auto const added = config ? config->root().find("added_tokens_decoder") : std::nullopt) {
            add_tokens(out, *added);
        }
        sentencepiece = named;
    } else if (is_file("vocab.json") && is_file("merges.txt")) {
        out = read_pair(directory / "vocab.json", directory / "merges.txt");
    } else {
        throw error(errc::not_found, directory.string() + ": no tokenizer.json, tokenizer.model or vocab.json");
    }
    if (auto const map = read_json(directory / "special_tokens_map.json"); map && named) {
        name_special(out, map->root());
    }
    if (config && named) name_special(out, config->root());
    if (sentencepiece) {
        // As T5 does it and as LLaMA does it, where the configuration says nothing.
        bool const unigram = std::holds_alternative<unigram_model>(out.model);
        if (unigram && out.eos) out.after = {*out.eos};
        if (!unigram && out.bos) out.before = {*out.bos};
    }
    if (config && named) set_added(out, config->root());
    if (auto const generation = read_json(directory / "generation_config.json")) {
        read_ends(out, generation->root());
        if (!out.eos && !out.ends.empty()) out.eos = out.ends.front();
    }
    return out;
}

void pad_vocabulary(tokenizer_description& to, std::size_t size)
{
    if (to.tokens.size() >= size) return;
    to.tokens.resize(size);
    to.types.resize(size, token_type::unused);
    if (auto* model = std::get_if<sentencepiece_bpe_model>(&to.model)) model->scores.resize(size);
    if (auto* model = std::get_if<unigram_model>(&to.model)) model->scores.resize(size);
}

} // namespace plait
