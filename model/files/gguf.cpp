#include <plait/model/files/gguf.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/fingerprint.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is little-endian; a big-endian host must swap");

// Bounds that no honest file comes near. They keep what a header costs in proportion.
constexpr std::uint64_t max_key_bytes = 65535;       // the format's own limit
constexpr std::uint64_t max_string_bytes = 16 << 20; // the longest published chat templates are about 100 KiB
constexpr std::uint64_t max_tensor_name_bytes = 64;  // the format's own limit
constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t max_alignment = 65536;
constexpr std::uint32_t max_parts = 1024;
constexpr std::uint64_t first_read = 2 << 20; // holds the header of a vocabulary of 50,000 tokens

// The least that one item of a table takes, so that a lying count is refused before anything is reserved for it.
constexpr std::uint64_t min_entry_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t min_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;

template<class T>
T load(std::byte const* from) noexcept
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

std::string text(std::uint64_t value)
{
    return std::to_string(value);
}

/// Bytes of a scalar of `type`; 0 for strings and arrays.
std::uint64_t scalar_bytes(gguf_type type) noexcept
{
    switch (type) {
    case gguf_type::u8:
    case gguf_type::i8:
    case gguf_type::boolean:
        return 1;
    case gguf_type::u16:
    case gguf_type::i16:
        return 2;
    case gguf_type::u32:
    case gguf_type::i32:
    case gguf_type::f32:
        return 4;
    case gguf_type::u64:
    case gguf_type::i64:
    case gguf_type::f64:
        return 8;
    case gguf_type::string:
    case gguf_type::array:
        break;
    }
    return 0;
}

/// An integer of any type: its magnitude where it is not negative, and whether it is.
struct integer {
    std::uint64_t value = 0;
    bool negative = false;
};

std::optional<integer> load_integer(gguf_type type, std::byte const* from) noexcept
{
    auto from_signed = [](std::int64_t v) { return integer{static_cast<std::uint64_t>(v), v < 0}; };
    switch (type) {
    case gguf_type::u8:
        return integer{load<std::uint8_t>(from)};
    case gguf_type::u16:
        return integer{load<std::uint16_t>(from)};
    case gguf_type::u32:
        return integer{load<std::uint32_t>(from)};
    case gguf_type::u64:
        return integer{load<std::uint64_t>(from)};
    case gguf_type::i8:
        return from_signed(load<std::int8_t>(from));
    case gguf_type::i16:
        return from_signed(load<std::int16_t>(from));
    case gguf_type::i32:
        return from_signed(load<std::int32_t>(from));
    case gguf_type::i64:
        return from_signed(load<std::int64_t>(from));
    default:
        return std::nullopt;
    }
}

std::string kind(gguf_entry const& entry)
{
    if (entry.type != gguf_type::array) return std::string(name(entry.type));
    return "array of " + std::string(name(entry.element));
}

} // namespace

/// One pass over a header. It may see only the first bytes of the file; where it needs more it says how many, the
/// caller reads on (at least twice as many, so the work stays linear) and starts again.
class gguf_file::parser {
public:
    /// Thrown: the file is longer than what is in memory, and the header goes on.
    struct need_more {
        std::uint64_t bytes;
    };

    parser(gguf_file& file, std::span<std::byte const> available)
        : file_(file)
        , available_(available)
    {
    }

    void run()
    {
        read_preamble();
        read_entries();
        read_tensors();
        file_.parts_.emplace_back().header = available_.first(static_cast<std::size_t>(position_));
        place_tensors();
    }

private:
    [[noreturn]] void fail(std::string const& field, std::string const& what, errc code = errc::bad_file) const
    {
        throw error(code, file_.source_ + ": " + field + ": " + what);
    }

    std::uint64_t remaining() const noexcept { return file_.size_ - position_; }

    std::byte const* take(std::uint64_t bytes, std::string const& field)
    {
        if (bytes > remaining())
            fail(field, "needs " + text(bytes) + " bytes at byte " + text(position_) + ", but the file ends at byte " +
                            text(file_.size_) + " (truncated?)");
        std::uint64_t const end = position_ + bytes;
        if (end > max_header_bytes) fail(field, "the header is longer than " + text(max_header_bytes) + " bytes");
        if (end > available_.size()) throw need_more{end};
        std::byte const* at = available_.data() + position_;
        position_ = end;
        return at;
    }

    template<class T>
    T take(std::string const& field)
    {
        return load<T>(take(sizeof(T), field));
    }

    std::string_view take_string(std::uint64_t limit, std::string const& field)
    {
        auto const bytes = take<std::uint64_t>(field);
        if (bytes > remaining())
            fail(field, "a string of " + text(bytes) + " bytes, but only " + text(remaining()) + " are left");
        if (bytes > limit)
            fail(field, "a string of " + text(bytes) + " bytes; at most " + text(limit) + " are allowed");
        return {reinterpret_cast<char const*>(take(bytes, field)), static_cast<std::size_t>(bytes)};
    }

    std::string_view take_name(std::uint64_t limit, std::string const& field)
    {
        std::string_view const name = take_string(limit, field);
        if (name.empty()) fail(field, "is empty");
        if (name.find('\0') != name.npos) fail(field, quote(name) + " holds a NUL byte");
        return name;
    }

    void read_preamble()
    {
        if (file_.size_ < 4) fail("magic", "the file has " + text(file_.size_) + " bytes: not a GGUF file");
        std::byte const* magic = take(4, "magic");
        if (std::memcmp(magic, "GGUF", 4) != 0) fail("magic", "not a GGUF file");
        auto const version = take<std::uint32_t>("version");
        if (version == 0) fail("version", "is 0");
        if ((version & 0xffff) == 0)
            fail("version", "the file is big-endian; only little-endian files are read", errc::unsupported);
        if (version == 1 || version > 3)
            fail("version", text(version) + "; versions 2 and 3 are read", errc::unsupported);
        file_.version_ = version;
        tensor_count_ = take<std::uint64_t>("tensor count");
        entry_count_ = take<std::uint64_t>("metadata count");
        std::uint64_t const left = remaining();
        if (tensor_count_ > left / min_tensor_bytes)
            fail("tensor count", text(tensor_count_) + " tensors cannot fit in " + text(left) + " bytes");
        if (entry_count_ > left / min_entry_bytes)
            fail("metadata count", text(entry_count_) + " entries cannot fit in " + text(left) + " bytes");
    }

    gguf_type take_type(std::string const& field)
    {
        auto const type = take<std::uint32_t>(field);
        if (type > static_cast<std::uint32_t>(gguf_type::f64)) fail(field, "unknown value type " + text(type));
        return static_cast<gguf_type>(type);
    }

    void skip_strings(std::uint64_t count, std::string const& field)
    {
        for (std::uint64_t i = 0; i < count; ++i)
            take_string(max_string_bytes, field);
    }

    void read_entry(std::uint64_t index)
    {
        gguf_entry entry;
        entry.key = take_name(max_key_bytes, "metadata key " + text(index));
        std::string const field = "key " + quote(entry.key);
        entry.type = take_type(field);
        entry.element = entry.type;
        if (entry.type == gguf_type::array) {
            entry.element = take_type(field);
            if (entry.element == gguf_type::array) fail(field, "arrays of arrays are not read");
            entry.count = take<std::uint64_t>(field);
        }
        std::uint64_t const least = entry.element == gguf_type::string ? 8 : scalar_bytes(entry.element);
        if (entry.count > remaining() / least)
            fail(field, text(entry.count) + " elements of at least " + text(least) + " bytes, but only " +
                            text(remaining()) + " bytes are left");
        std::uint64_t const start = position_;
        if (entry.element == gguf_type::string)
            skip_strings(entry.count, field);
        else
            take(entry.count * least, field);
        entry.payload = available_.subspan(start, position_ - start);
        if (entry.element == gguf_type::boolean) {
            auto const valid = [](std::byte b) { return std::to_integer<int>(b) <= 1; };
            if (!std::ranges::all_of(entry.payload, valid)) fail(field, "a boolean is neither 0 nor 1");
        }
        file_.entries_.push_back(entry);
    }

    void read_entries()
    {
        for (std::uint64_t i = 0; i < entry_count_; ++i)
            read_entry(i);
        auto& order = file_.entries_by_key_;
        auto const& entries = file_.entries_;
        order.resize(entries.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::sort(order, {}, [&](std::uint32_t i) { return entries[i].key; });
        auto const twin = std::ranges::adjacent_find(order, {}, [&](std::uint32_t i) { return entries[i].key; });
        if (twin != order.end()) fail("key " + quote(entries[*twin].key), "appears twice");

        if (gguf_entry const* entry = file_.find_entry("general.alignment")) {
            std::string const field = "key 'general.alignment'";
            if (entry->type != gguf_type::u32) fail(field, "is " + kind(*entry) + ", expected u32");
            alignment_ = load<std::uint32_t>(entry->payload.data());
            if (!std::has_single_bit(alignment_) || alignment_ < 8 || alignment_ > max_alignment)
                fail(field, text(alignment_) + " is not a power of two from 8 to " + text(max_alignment));
        }
    }

    void read_tensor(std::uint64_t index)
    {
        stored_tensor tensor;
        tensor.name = take_name(max_tensor_name_bytes, "name of tensor " + text(index));
        std::string const field = "tensor " + quote(tensor.name);
        tensor.rank = take<std::uint32_t>(field);
        if (tensor.rank < 1 || tensor.rank > 4) fail(field, text(tensor.rank) + " dimensions; a tensor has 1 to 4");
        // The product stays below 2^63 so that every later size and index is exact in signed 64 bits.
        constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
        std::uint64_t elements = 1;
        for (unsigned d = 0; d < tensor.rank; ++d) {
            auto const size = take<std::uint64_t>(field);
            if (size == 0 || size > largest)
                fail(field, "dimension " + text(d) + " is " + (size == 0 ? "0" : "negative or too large"));
            if (elements > largest / size) fail(field, "the product of its dimensions overflows");
            elements *= size;
            tensor.dims[d] = static_cast<std::int64_t>(size);
        }
        auto const type = take<std::uint32_t>(field);
        ggml_layout const* layout = find_layout(type);
        if (layout == nullptr) fail(field, "unknown or removed type " + text(type));
        tensor.type = static_cast<ggml_type>(type);
        if (tensor.dims[0] % layout->block != 0)
            fail(field, "a row of " + text(static_cast<std::uint64_t>(tensor.dims[0])) +
                            " columns is not a multiple of the block of " + text(layout->block) + " of " +
                            std::string(layout->name));
        std::uint64_t const blocks = elements / layout->block;
        if (blocks > largest / layout->bytes) fail(field, "its size in bytes overflows");
        tensor.bytes = blocks * layout->bytes;
        tensor.offset = take<std::uint64_t>(field); // from the start of the data; place_tensors() makes it absolute
        if (tensor.offset % alignment_ != 0)
            fail(field, "offset " + text(tensor.offset) + " is not a multiple of the alignment " + text(alignment_));
        file_.tensors_.push_back(tensor);
    }

    void read_tensors()
    {
        for (std::uint64_t i = 0; i < tensor_count_; ++i)
            read_tensor(i);
        file_.index_tensors();
        auto const& order = file_.tensors_by_name_;
        auto const& tensors = file_.tensors_;
        auto const twin = std::ranges::adjacent_find(order, {}, [&](std::uint32_t i) { return tensors[i].name; });
        if (twin != order.end()) fail("tensor " + quote(tensors[*twin].name), "appears twice");
    }

    /// Makes the offsets absolute and proves that the tensors lie inside the file, apart from each other.
    void place_tensors()
    {
        std::uint64_t const data = (position_ + alignment_ - 1) / alignment_ * alignment_;
        for (stored_tensor& tensor : file_.tensors_) {
            std::uint64_t const room = data <= file_.size_ ? file_.size_ - data : 0;
            if (tensor.offset > room || tensor.bytes > room - tensor.offset)
                fail("tensor " + quote(tensor.name), "its " + text(tensor.bytes) + " bytes at offset " +
                                                         text(tensor.offset) + " of the data end after the " +
                                                         text(room) + " bytes of data in the file (truncated?)");
            tensor.offset += data;
        }
        std::vector<std::uint32_t> order(file_.tensors_.size());
        std::iota(order.begin(), order.end(), 0u);
        auto const offset = [&](std::uint32_t i) { return file_.tensors_[i].offset; };
        std::ranges::sort(order, {}, offset);
        for (std::size_t i = 1; i < order.size(); ++i) {
            stored_tensor const& before = file_.tensors_[order[i - 1]];
            stored_tensor const& after = file_.tensors_[order[i]];
            if (before.offset + before.bytes > after.offset)
                fail("tensor " + quote(after.name), "overlaps tensor " + quote(before.name));
        }
    }

    gguf_file& file_;
    std::span<std::byte const> available_;
    std::uint64_t position_ = 0;
    std::uint64_t tensor_count_ = 0;
    std::uint64_t entry_count_ = 0;
    std::uint64_t alignment_ = 32;
};

gguf_file gguf_file::open_one(std::filesystem::path const& path)
{
    mapped_file mapped(path);
    std::uint64_t bytes = std::min(first_read, mapped.size());
    std::unique_ptr<std::byte[]> buffer;
    std::uint64_t filled = 0;
    for (;;) {
        auto grown = std::make_unique_for_overwrite<std::byte[]>(bytes);
        if (filled != 0) std::memcpy(grown.get(), buffer.get(), filled);
        mapped.read(filled, {grown.get() + filled, static_cast<std::size_t>(bytes - filled)});
        buffer = std::move(grown);
        filled = bytes;

        gguf_file file;
        file.source_ = path.string();
        file.size_ = mapped.size();
        try {
            parser(file, {buffer.get(), static_cast<std::size_t>(filled)}).run();
        } catch (parser::need_more const& more) {
            bytes = std::min(std::max(more.bytes, filled * 2), mapped.size());
            continue;
        }
        part& only = file.parts_.front();
        only.owned = std::move(buffer);
        only.file = std::move(mapped);
        only.image = only.file.bytes();
        return file;
    }
}

gguf_file gguf_file::open(std::filesystem::path const& path)
{
    gguf_file file = open_one(path);
    if (file.u32("split.count", 1) > 1) file.add_parts(path);
    return file;
}

namespace {

/// "-00001-of-00003.gguf": how a model's parts end, counted from 1.
std::string part_suffix(std::uint32_t number, std::uint32_t count)
{
    auto const five = [](std::uint32_t n) {
        std::string const digits = std::to_string(n);
        return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    };
    return "-" + five(number) + "-of-" + five(count) + ".gguf";
}

} // namespace

/// The convention of llama.cpp's gguf-split: the first part has the metadata, and each says which it is.
void gguf_file::add_parts(std::filesystem::path const& path)
{
    auto const fail = [](gguf_file const& in, std::string const& key, std::string const& what) {
        throw error(errc::bad_file, in.source_ + ": key '" + key + "': " + what);
    };
    std::uint32_t const count = u32("split.count");
    std::string const first = part_suffix(1, count);
    std::string const named = path.filename().string();
    if (count > max_parts) fail(*this, "split.count", text(count) + " parts; at most " + text(max_parts) + " are read");
    if (u32("split.no") != 0)
        fail(*this, "split.no",
             "this is part " + text(std::uint64_t{u32("split.no")} + 1) + " of " + text(count) +
                 "; open the first, whose name ends in " + first);
    if (!named.ends_with(first)) fail(*this, "split.count", text(count) + " parts, so the name must end in " + first);
    std::string const stem = named.substr(0, named.size() - first.size());
    parts_.reserve(count);
    for (std::uint32_t i = 1; i < count; ++i) {
        gguf_file next = open_one(path.parent_path() / (stem + part_suffix(i + 1, count)));
        if (next.u32("split.no") != i)
            fail(next, "split.no", "is " + text(next.u32("split.no")) + ", expected " + text(i));
        if (next.u32("split.count") != count)
            fail(next, "split.count",
                 "is " + text(next.u32("split.count")) + ", but " + text(count) + " in the first part");
        tensors_.reserve(tensors_.size() + next.tensors_.size());
        for (stored_tensor tensor : next.tensors_) {
            if (find_tensor(tensor.name) != nullptr)
                throw error(errc::bad_file,
                            next.source_ + ": tensor " + quote(tensor.name) + ": an earlier part has it, too");
            tensor.file = i;
            tensors_.push_back(tensor);
        }
        size_ += next.size_;
        parts_.push_back(std::move(next.parts_.front()));
        index_tensors();
    }
    if (u64("split.tensors.count") != tensors_.size())
        fail(*this, "split.tensors.count",
             text(u64("split.tensors.count")) + " tensors, but the parts have " + text(tensors_.size()));
}

void gguf_file::index_tensors()
{
    tensors_by_name_.resize(tensors_.size());
    std::iota(tensors_by_name_.begin(), tensors_by_name_.end(), 0u);
    std::ranges::sort(tensors_by_name_, {}, [&](std::uint32_t i) { return tensors_[i].name; });
}

gguf_file gguf_file::parse(std::span<std::byte const> image, std::string source)
{
    gguf_file file;
    file.source_ = std::move(source);
    file.size_ = image.size();
    parser(file, image).run();
    file.parts_.front().image = image;
    return file;
}

std::string_view name(gguf_type type) noexcept
{
    constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                          "bool", "string", "array", "u64", "i64", "f64"};
    auto const index = static_cast<std::size_t>(type);
    return index < std::size(names) ? names[index] : "unknown";
}

gguf_entry const* gguf_file::find_entry(std::string_view key) const noexcept
{
    auto const at =
        std::ranges::lower_bound(entries_by_key_, key, {}, [&](std::uint32_t i) { return entries_[i].key; });
    return at != entries_by_key_.end() && entries_[*at].key == key ? &entries_[*at] : nullptr;
}

stored_tensor const* gguf_file::find_tensor(std::string_view name) const noexcept
{
    auto const at =
        std::ranges::lower_bound(tensors_by_name_, name, {}, [&](std::uint32_t i) { return tensors_[i].name; });
    return at != tensors_by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

gguf_entry const& gguf_file::require(std::string_view key) const
{
    if (gguf_entry const* entry = find_entry(key)) return *entry;
    throw error(errc::bad_file, source_ + ": key " + quote(key) + ": missing");
}

namespace {

[[noreturn]] void refuse(std::string const& source, gguf_entry const& entry, std::string const& what)
{
    throw error(errc::bad_file, source + ": key " + quote(entry.key) + ": " + what);
}

[[noreturn]] void wrong_type(std::string const& source, gguf_entry const& entry, std::string const& expected)
{
    refuse(source, entry, "is " + kind(entry) + ", expected " + expected);
}

std::uint64_t unsigned_value(std::string const& source, gguf_entry const& entry, std::uint64_t largest)
{
    auto const value = load_integer(entry.type, entry.payload.data());
    if (!value) wrong_type(source, entry, "an integer");
    if (value->negative) refuse(source, entry, "is negative");
    if (value->value > largest)
        refuse(source, entry, text(value->value) + " is above the largest value possible, " + text(largest));
    return value->value;
}

void expect_array(std::string const& source, gguf_entry const& entry, bool element_fits, std::string const& expected)
{
    if (entry.type != gguf_type::array || !element_fits) wrong_type(source, entry, "an array of " + expected);
}

bool is_float(gguf_type type) noexcept
{
    return type == gguf_type::f32 || type == gguf_type::f64;
}

bool is_integer(gguf_type type) noexcept
{
    return scalar_bytes(type) != 0 && type != gguf_type::boolean && !is_float(type);
}

float load_float(gguf_type type, std::byte const* from) noexcept
{
    return type == gguf_type::f32 ? load<float>(from) : static_cast<float>(load<double>(from));
}

} // namespace

std::uint32_t gguf_file::u32(std::string_view key) const
{
    constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(unsigned_value(source_, require(key), largest));
}

std::uint64_t gguf_file::u64(std::string_view key) const
{
    return unsigned_value(source_, require(key), std::numeric_limits<std::uint64_t>::max());
}

float gguf_file::f32(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    if (!is_float(entry.type)) wrong_type(source_, entry, "a floating-point number");
    return load_float(entry.type, entry.payload.data());
}

bool gguf_file::boolean(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    if (entry.type != gguf_type::boolean) wrong_type(source_, entry, "a bool");
    return entry.payload[0] != std::byte{0};
}

std::string_view gguf_file::string(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    if (entry.type != gguf_type::string) wrong_type(source_, entry, "a string");
    return {reinterpret_cast<char const*>(entry.payload.data()) + 8, entry.payload.size() - 8};
}

std::vector<std::int32_t> gguf_file::i32s(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    expect_array(source_, entry, is_integer(entry.element), "integers");
    std::uint64_t const step = scalar_bytes(entry.element);
    std::vector<std::int32_t> values(static_cast<std::size_t>(entry.count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        integer const value = *load_integer(entry.element, entry.payload.data() + i * step);
        // A negative value is held as its two's complement, so both ranges are one comparison after a shift of origin.
        std::uint64_t const shifted = value.value + 0x80000000u;
        if (shifted > 0xffffffffu || value.negative != (shifted < 0x80000000u))
            refuse(source_, entry, "element " + text(i) + " does not fit in 32 bits");
        values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(value.value));
    }
    return values;
}

std::vector<float> gguf_file::f32s(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    expect_array(source_, entry, is_float(entry.element), "floating-point numbers");
    std::uint64_t const step = scalar_bytes(entry.element);
    std::vector<float> values(static_cast<std::size_t>(entry.count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = load_float(entry.element, entry.payload.data() + i * step);
    return values;
}

std::vector<std::string_view> gguf_file::strings(std::string_view key) const
{
    gguf_entry const& entry = require(key);
    expect_array(source_, entry, entry.element == gguf_type::string, "strings");
    std::vector<std::string_view> values(static_cast<std::size_t>(entry.count));
    std::byte const* at = entry.payload.data();
    for (std::string_view& value : values) {
        auto const bytes = load<std::uint64_t>(at); // checked by the parser
        value = {reinterpret_cast<char const*>(at + 8), static_cast<std::size_t>(bytes)};
        at += 8 + bytes;
    }
    return values;
}

std::uint32_t gguf_file::u32(std::string_view key, std::uint32_t fallback) const
{
    return has(key) ? u32(key) : fallback;
}

float gguf_file::f32(std::string_view key, float fallback) const
{
    return has(key) ? f32(key) : fallback;
}

bool gguf_file::boolean(std::string_view key, bool fallback) const
{
    return has(key) ? boolean(key) : fallback;
}

std::string_view gguf_file::string(std::string_view key, std::string_view fallback) const
{
    return has(key) ? string(key) : fallback;
}

std::span<std::byte const> gguf_file::data(stored_tensor const& tensor) const noexcept
{
    return parts_[tensor.file].image.subspan(static_cast<std::size_t>(tensor.offset),
                                             static_cast<std::size_t>(tensor.bytes));
}

void gguf_file::read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const
{
    check_range(tensor, offset, out.size());
    if (out.empty()) return;
    part const& in = parts_[tensor.file];
    if (in.owned)
        in.file.read(tensor.offset + offset, out);
    else
        std::memcpy(out.data(), in.image.data() + tensor.offset + offset, out.size());
}

void gguf_file::release(stored_tensor const& tensor) const noexcept
{
    part const& in = parts_[tensor.file];
    if (in.owned) in.file.release(data(tensor));
}

void gguf_file::will_need(stored_tensor const& tensor) const noexcept
{
    part const& in = parts_[tensor.file];
    if (in.owned) in.file.will_need(data(tensor));
}

void gguf_file::check_unchanged() const
{
    for (part const& p : parts_)
        if (p.owned) p.file.check_unchanged();
}

std::uint64_t gguf_file::fingerprint() const
{
    std::uint64_t hash = size_;
    for (part const& p : parts_)
        hash = mix(hash, p.header);
    return mix_samples(hash, *this);
}

} // namespace plait
