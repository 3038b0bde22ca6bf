#include <plait/model/text/sentencepiece_model.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/symbol_set.hpp>
#include <plait/model/text/utf8.hpp>

#include <bit>
#include <memory>
#include <optional>

namespace plait {
namespace {

// A text is searched for symbols at every place.
constexpr std::size_t longest_symbol = 1024;

[[noreturn]] void bad(std::string const& field, std::string const& what)
{
    throw error(errc::bad_file, field + ": " + what);
}

// The fields of one protobuf message, in order (protobuf.dev, "Encoding").
class message {
public:
    struct field {
        std::uint64_t number = 0;
        unsigned wire = 0;
        std::uint64_t value = 0; // of a varint or a fixed field
        std::string_view bytes;  // of a field with a length
    };

    message(std::string_view bytes, std::string const& name)
        : bytes_(bytes)
        , name_(name)
    {
    }

    std::optional<field> next()
    {
        if (bytes_.empty()) return std::nullopt;
        field out;
        auto const key = varint();
        out.number = key >> 3;
        out.wire = static_cast<unsigned>(key & 7);
        if (out.number == 0) bad(name_, "field number 0");
        switch (out.wire) {
        case 0:
            out.value = varint();
            break;
        case 1:
            out.value = fixed(8);
            break;
        case 2: {
            auto const size = varint();
            if (size > bytes_.size()) bad(name_, "field " + std::to_string(out.number) + " goes beyond its end");
            out.bytes = bytes_.substr(0, size);
            bytes_.remove_prefix(size);
            break;
        }
        case 5:
            out.value = fixed(4);
            break;
        default:
            bad(name_, "wire type " + std::to_string(out.wire));
        }
        return out;
    }

private:
    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (bytes_.empty()) bad(name_, "ends inside a number");
            auto const byte = static_cast<unsigned char>(bytes_.front());
            bytes_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7Fu} << shift;
            if (byte < 0x80) return value;
        }
        bad(name_, "a number of more than 64 bits");
    }

    std::uint64_t fixed(std::size_t size)
    {
        if (bytes_.size() < size) bad(name_, "ends inside a number");
        std::uint64_t value = 0;
        for (std::size_t i = size; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes_[i]);
        bytes_.remove_prefix(size);
        return value;
    }

    std::string_view bytes_;
    std::string const& name_;
};

void require(message::field const& f, unsigned wire, std::string const& name)
{
    if (f.wire != wire) bad(name, "field " + std::to_string(f.number) + " has wire type " + std::to_string(f.wire));
}

sentencepiece_model::piece read_piece(std::string_view bytes, std::string const& name)
{
    sentencepiece_model::piece out;
    message m(bytes, name);
    while (auto const f = m.next()) {
        if (f->number == 1) {
            require(*f, 2, name);
            out.text = f->bytes;
        } else if (f->number == 2) {
            require(*f, 5, name);
            out.score = std::bit_cast<float>(static_cast<std::uint32_t>(f->value));
        } else if (f->number == 3) {
            require(*f, 0, name);
            if (f->value < 1 || f->value > 6) bad(name, "unknown type " + std::to_string(f->value));
            out.type = static_cast<token_type>(f->value);
        }
    }
    if (!is_utf8(out.text)) bad(name, "not UTF-8");
    return out;
}

void read_trainer(std::string_view bytes, std::string const& name, sentencepiece_model& out)
{
    message m(bytes, name);
    while (auto const f = m.next()) {
        // Ids are 32-bit, and negative ones are written as 64-bit numbers.
        auto const id = static_cast<std::int64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(f->value)));
        switch (f->number) {
        case 3:
            require(*f, 0, name);
            if (f->value != 1 && f->value != 2) {
                throw error(errc::unsupported, name + ".model_type: " + std::to_string(f->value));
            }
            out.how = static_cast<sentencepiece_model::algorithm>(f->value);
            break;
        case 24:
            require(*f, 0, name);
            out.space_is_suffix = f->value != 0;
            break;
        case 35:
            require(*f, 0, name);
            out.byte_fallback = f->value != 0;
            break;
        case 40:
            require(*f, 0, name);
            out.unknown = id;
            break;
        case 41:
            require(*f, 0, name);
            out.begin = id;
            break;
        case 42:
            require(*f, 0, name);
            out.end = id;
            break;
        case 43:
            require(*f, 0, name);
            out.padding = id;
            break;
        default:
            break;
        }
    }
}

void read_normalizer(std::string_view bytes, std::string const& name, sentencepiece_model& out)
{
    message m(bytes, name);
    while (auto const f = m.next()) {
        switch (f->number) {
        case 2:
            require(*f, 2, name);
            out.charsmap = f->bytes;
            break;
        case 3:
            require(*f, 0, name);
            out.add_prefix = f->value != 0;
            break;
        case 4:
            require(*f, 0, name);
            out.remove_extra_spaces = f->value != 0;
            break;
        case 5:
            require(*f, 0, name);
            out.escape_spaces = f->value != 0;
            break;
        default:
            break;
        }
    }
}

} // namespace

sentencepiece_model sentencepiece_model::parse(std::string_view bytes, std::string const& source)
{
    sentencepiece_model out;
    message m(bytes, source);
    while (auto const f = m.next()) {
        if (f->number == 1) {
            require(*f, 2, source);
            out.pieces.push_back(read_piece(f->bytes, source + ": pieces[" + std::to_string(out.pieces.size()) + "]"));
        } else if (f->number == 2) {
            require(*f, 2, source);
            read_trainer(f->bytes, source + ": trainer_spec", out);
        } else if (f->number == 3) {
            require(*f, 2, source);
            read_normalizer(f->bytes, source + ": normalizer_spec", out);
        } else if (f->number == 5) {
            require(*f, 2, source);
            sentencepiece_model denormalizer;
            read_normalizer(f->bytes, source + ": denormalizer_spec", denormalizer);
            if (!denormalizer.charsmap.empty()) throw error(errc::unsupported, source + ": denormalizer_spec");
        }
    }
    if (out.pieces.empty()) bad(source, "no pieces");
    return out;
}

tokenizer_description describe(sentencepiece_model const& model, std::string const& source)
{
    tokenizer_description out;
    out.fields = {.tokens = source + ": pieces",
                  .types = source + ": pieces",
                  .scores = source + ": pieces",
                  .merges = source + ": pieces",
                  .added = source + ": pieces"};
    std::size_t const count = model.pieces.size();
    out.tokens.reserve(count);
    out.types.reserve(count);
    bool const bpe = model.how == sentencepiece_model::algorithm::bpe;
    for (std::size_t i = 0; i < count; ++i) {
        auto const& p = model.pieces[i];
        out.tokens.push_back(p.text);
        out.types.push_back(p.type);
        bool const structure = p.type == token_type::control || p.type == token_type::unknown;
        // The library looks for user-defined symbols in the normalised text; a unigram lattice has them as pieces.
        if (!structure && !(p.type == token_type::user_defined && bpe)) continue;
        out.added.push_back({.id = static_cast<std::int32_t>(i), .text = p.text, .normalized = !structure});
    }
    out.added_are_normal = true;
    out.added_are_certain = true;
    out.spell_added = true;

    auto const check = [&](char const* field, std::int64_t id) -> std::optional<std::int64_t> {
        if (id < 0) return std::nullopt;
        if (static_cast<std::uint64_t>(id) >= count) {
            bad(source + ": trainer_spec." + field,
                std::to_string(id) + " is not in a vocabulary of " + std::to_string(count));
        }
        return id;
    };
    out.unknown = check("unk_id", model.unknown);
    out.bos = check("bos_id", model.begin);
    out.eos = check("eos_id", model.end);
    check("pad_id", model.padding);

    auto symbols = std::make_shared<symbol_set>();
    for (auto const& p : model.pieces) {
        if (p.type == token_type::user_defined) symbols->add(p.text);
    }
    if (symbols->longest() > longest_symbol) {
        throw error(errc::unsupported,
                    source + ": pieces: a user-defined symbol of " + std::to_string(symbols->longest()) + " bytes");
    }
    normal::sentencepiece how{.map = nullptr,
                              .symbols = std::move(symbols),
                              .remove_extra_spaces = model.remove_extra_spaces,
                              .add_prefix = model.add_prefix,
                              .escape_spaces = model.escape_spaces,
                              .prefix_at_end = model.space_is_suffix};
    if (!model.charsmap.empty()) {
        how.map = std::make_shared<charsmap const>(model.charsmap, source + ": normalizer_spec.precompiled_charsmap");
    }
    out.normalizer = {std::move(how)};
    out.spelling = {spelling::byte_fallback{}, spelling::replace{.from = "\u2581", .to = " "}};
    if (model.add_prefix && !model.space_is_suffix) out.strip_front = " ";

    if (bpe) {
        sentencepiece_bpe_model m{.scores = {}, .byte_fallback = model.byte_fallback};
        m.scores.reserve(count);
        for (auto const& p : model.pieces)
            m.scores.push_back(p.score);
        out.model = std::move(m);
    } else {
        unigram_model m{.scores = {}, .byte_fallback = model.byte_fallback, .single_precision = true, .bonus = true};
        m.scores.reserve(count);
        for (auto const& p : model.pieces)
            m.scores.push_back(static_cast<double>(p.score));
        out.model = std::move(m);
    }
    return out;
}

} // namespace plait
