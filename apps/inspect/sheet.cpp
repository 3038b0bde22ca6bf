#include <plait/apps/inspect/sheet.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/chat/printable.hpp>
#include <plait/apps/inspect/texts.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/text/model_tokenizer.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <vector>

namespace plait::inspecting {
namespace {

using chat::printable_line;

/// Of an array or a string of metadata.
constexpr std::size_t most_elements = 8;
constexpr std::size_t most_bytes = 100;

using row = std::vector<std::string>;

/// How many places a text takes, a place for each character.
std::size_t places(std::string const& text)
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Columns side by side, the last one of each row ending it; `right`: bit i for one that is aligned to the right.
std::string table(std::vector<row> const& rows, unsigned right)
{
    std::vector<std::size_t> widths;
    for (auto const& r : rows)
        for (std::size_t i = 0; i < r.size(); ++i) {
            if (widths.size() <= i) widths.push_back(0);
            widths[i] = std::max(widths[i], places(r[i]));
        }
    std::string out;
    for (auto const& r : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < r.size(); ++i) {
            std::string const gap(widths[i] - places(r[i]), ' ');
            bool const to_the_right = (right >> i & 1) != 0;
            line += " " + (to_the_right ? gap + r[i] : r[i] + gap);
        }
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
}

/// At most `most_bytes` of it, in whole characters.
std::string shortened(std::string_view text)
{
    if (text.size() <= most_bytes) return printable_line(text);
    auto cut = most_bytes;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
        --cut;
    return printable_line(text.substr(0, cut)) + "… (" + std::to_string(text.size()) + " bytes)";
}

template<class T>
T value_at(std::span<std::byte const> payload, std::size_t index)
{
    T out{};
    std::memcpy(&out, payload.data() + index * sizeof(T), sizeof(T));
    return out;
}

std::string number(double value)
{
    std::ostringstream out;
    out << value;
    return out.str();
}

/// One value that is no string.
std::string scalar(gguf_type type, std::span<std::byte const> payload, std::size_t index)
{
    switch (type) {
    case gguf_type::u8:
        return std::to_string(value_at<std::uint8_t>(payload, index));
    case gguf_type::i8:
        return std::to_string(value_at<std::int8_t>(payload, index));
    case gguf_type::u16:
        return std::to_string(value_at<std::uint16_t>(payload, index));
    case gguf_type::i16:
        return std::to_string(value_at<std::int16_t>(payload, index));
    case gguf_type::u32:
        return std::to_string(value_at<std::uint32_t>(payload, index));
    case gguf_type::i32:
        return std::to_string(value_at<std::int32_t>(payload, index));
    case gguf_type::u64:
        return std::to_string(value_at<std::uint64_t>(payload, index));
    case gguf_type::i64:
        return std::to_string(value_at<std::int64_t>(payload, index));
    case gguf_type::f32:
        return number(static_cast<double>(value_at<float>(payload, index)));
    case gguf_type::f64:
        return number(value_at<double>(payload, index));
    case gguf_type::boolean:
        return value_at<std::uint8_t>(payload, index) != 0 ? "true" : "false";
    case gguf_type::string:
    case gguf_type::array:
        break;
    }
    return "?";
}

/// "[first, second, … 49152 in all]"
template<class Element>
std::string list(std::size_t count, Element element)
{
    std::string out = "[";
    for (std::size_t i = 0; i < std::min(count, most_elements); ++i)
        out += (i > 0 ? ", " : "") + element(i);
    if (count > most_elements) out += ", … " + std::to_string(count) + " in all";
    return out + "]";
}

std::string value_of(gguf_file const& file, gguf_entry const& entry)
{
    if (entry.type == gguf_type::string) return shortened(file.string(entry.key));
    if (entry.type != gguf_type::array) return scalar(entry.type, entry.payload, 0);
    auto const count = static_cast<std::size_t>(entry.count);
    if (entry.element == gguf_type::string) {
        auto const texts = file.strings(entry.key);
        return list(count, [&](std::size_t i) { return "\"" + shortened(texts[i]) + "\""; });
    }
    if (entry.element == gguf_type::array) return std::to_string(count) + " arrays";
    return list(count, [&](std::size_t i) { return scalar(entry.element, entry.payload, i); });
}

/// A list of a config.json, of whatever it is.
std::string list_of(json_config const& from, std::string_view key)
{
    try {
        auto const texts = from.strings(key);
        return list(texts.size(), [&](std::size_t i) { return "\"" + shortened(texts[i]) + "\""; });
    } catch (error const&) {
    }
    try {
        auto const numbers = from.numbers(key);
        return list(numbers.size(), [&](std::size_t i) { return number(numbers[i]); });
    } catch (error const&) {
    }
    return "a list";
}

void add_settings(json_config const& from, std::string const& path, std::vector<row>& rows)
{
    for (auto const key : from.keys()) {
        auto const name = path + printable_line(key);
        if (from.is_object(key))
            add_settings(from.object(key), name + ".", rows);
        else if (from.is_string(key))
            rows.push_back({name, shortened(from.string(key))});
        else if (from.is_boolean(key))
            rows.push_back({name, from.boolean(key) ? "true" : "false"});
        else if (from.is_integer(key))
            rows.push_back({name, std::to_string(from.integer(key))});
        else if (from.is_number(key))
            rows.push_back({name, number(from.number(key))});
        else
            rows.push_back({name, list_of(from, key)});
    }
}

struct kind_of {
    std::string operator()(bpe_model const& m) const
    {
        return std::string(m.from == bpe_model::symbols::bytes ? "byte-level BPE" : "BPE of characters") + ", " +
               std::to_string(m.merges.size()) + " merges";
    }
    std::string operator()(sentencepiece_bpe_model const&) const { return "SentencePiece BPE"; }
    std::string operator()(unigram_model const&) const { return "SentencePiece unigram"; }
};

std::string named(tokenizer const& text, std::int32_t id)
{
    return std::to_string(id) + " \"" + printable_line(text.piece(id)) + "\"";
}

std::vector<row> rows_of(tokenizer_description const& from, tokenizer const& text)
{
    std::vector<row> rows{{"kind", std::visit(kind_of(), from.model)}};
    std::map<token_type, std::size_t> counts;
    for (std::size_t id = 0; id < text.size(); ++id)
        ++counts[text.type(static_cast<std::int32_t>(id))];
    std::string tokens = std::to_string(text.size());
    for (auto const& [type, name] :
         {std::pair(token_type::control, "control"), std::pair(token_type::user_defined, "user-defined"),
          std::pair(token_type::byte, "byte"), std::pair(token_type::unused, "unused")})
        if (counts[type] > 0) tokens += ", " + std::to_string(counts[type]) + " " + name;
    rows.push_back({"tokens", tokens});
    if (text.bos()) rows.push_back({"begin", named(text, *text.bos()) + (text.adds_bos() ? ", added" : ", not added")});
    if (text.eos()) rows.push_back({"end", named(text, *text.eos()) + (text.adds_eos() ? ", added" : ", not added")});
    std::string ends;
    for (auto const id : text.end_of_generation())
        ends += (ends.empty() ? "" : ", ") + named(text, id);
    rows.push_back({"ends an answer", ends.empty() ? "nothing" : ends});
    return rows;
}

std::string share_of(std::uint64_t part, std::uint64_t all)
{
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%",
                  all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all));
    return text;
}

} // namespace

std::string show_model(model_files const& files, model_overrides const& overrides)
{
    model_spec found;
    try {
        found = describe(files).spec;
    } catch (error const& why) {
        return "plait does not run this model: " + printable_line(why.what()) + "\n";
    }
    apply(overrides, found);
    // A layer group in one line is long: its parts, of which the norm's place is the first, have a line each.
    std::string out;
    std::istringstream lines(to_string(found));
    for (std::string line; std::getline(lines, line);) {
        bool const layers = line.starts_with("layer");
        for (std::size_t at = 0; layers && (at = line.find("; ", at)) != line.npos;)
            line.replace(at, 2, "\n    ");
        std::istringstream parts(line);
        for (std::string part; std::getline(parts, part);)
            out += printable_line(part) + "\n";
    }
    return out;
}

std::string show_tensors(model_files const& files, bool all)
{
    auto const tensors = files.tensors().tensors();
    std::vector<row> rows;
    std::uint64_t bytes = 0;
    for (auto const& t : tensors)
        bytes += t.bytes;
    auto const head = "tensors: " + std::to_string(tensors.size()) + ", " + std::to_string(bytes) + " bytes\n";
    if (all) {
        rows.push_back({"name", "type", "shape", "bytes"});
        for (auto const& t : tensors)
            rows.push_back({printable_line(t.name), printable_line(type_name(t)), shape(t), std::to_string(t.bytes)});
        return head + table(rows, 0b1000);
    }
    struct sum {
        std::size_t tensors = 0;
        std::uint64_t values = 0, bytes = 0;
    };
    std::map<std::string, sum> sums;
    for (auto const& t : tensors) {
        auto& s = sums[printable_line(type_name(t))];
        ++s.tensors;
        s.values += static_cast<std::uint64_t>(t.cols() * t.rows());
        s.bytes += t.bytes;
    }
    rows.push_back({"type", "tensors", "values", "bytes", ""});
    for (auto const& [type, s] : sums)
        rows.push_back({type, std::to_string(s.tensors), std::to_string(s.values), std::to_string(s.bytes),
                        share_of(s.bytes, bytes)});
    return head + table(rows, 0b11110);
}

std::string show_metadata(model_files const& files)
{
    std::vector<row> rows;
    if (auto const* file = files.gguf()) {
        for (auto const& entry : file->metadata()) {
            std::string type(name(entry.type));
            if (entry.type == gguf_type::array) type = std::string(name(entry.element)) + "s";
            rows.push_back({printable_line(entry.key), type, value_of(*file, entry)});
        }
        return "metadata: GGUF version " + std::to_string(file->version()) + "\n" + table(rows, 0);
    }
    add_settings(files.hf()->config(), "", rows);
    return "config.json:\n" + table(rows, 0);
}

std::string show_text(model_files const& files)
{
    std::string out = "tokenizer:";
    try {
        auto const from = read_tokenizer(files);
        out += "\n" + table(rows_of(from, tokenizer(from)), 0);
    } catch (error const& why) {
        out += " none that plait reads: " + printable_line(why.what()) + "\n";
    }
    out += "chat template: ";
    try {
        auto const own = files.chat_template();
        auto const source = own.empty() ? template_of(files) : own;
        if (source.empty()) return out + "none\n";
        out += own.empty() ? std::string("plait's own") : std::to_string(source.size()) + " bytes";
        (void)chat_template::parse(source);
    } catch (error const& why) {
        return out + ", but it is not understood: " + printable_line(why.what()) + "\n";
    }
    return out + "\n";
}

} // namespace plait::inspecting
