#include <plait/model/files/gguf_metadata.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace plait {
namespace {

template<class T>
void append(std::vector<std::byte>& out, T value)
{
    static_assert(std::is_trivially_copyable_v<T>);
    auto const bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint32_t number(gguf_type type)
{
    return static_cast<std::uint32_t>(type);
}

template<class T>
std::vector<std::byte> one(T value)
{
    std::vector<std::byte> out;
    append(out, value);
    return out;
}

template<class T>
std::vector<std::byte> many(gguf_type type, std::span<T const> values)
{
    std::vector<std::byte> out;
    append(out, number(type));
    append(out, std::uint64_t{values.size()});
    auto const bytes = std::as_bytes(values);
    out.insert(out.end(), bytes.begin(), bytes.end());
    return out;
}

} // namespace

void append_gguf_string(std::vector<std::byte>& out, std::string_view value)
{
    append(out, std::uint64_t{value.size()});
    auto const bytes = std::as_bytes(std::span(value.data(), value.size()));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void gguf_metadata::set_raw(std::string_view key, std::uint32_t type, std::vector<std::byte> value)
{
    auto const found = std::ranges::find(entries, key, &entry::key);
    if (found != entries.end())
        *found = {std::string(key), type, std::move(value)};
    else
        entries.push_back({std::string(key), type, std::move(value)});
}

void gguf_metadata::set(std::string_view key, std::uint32_t value)
{
    set_raw(key, number(gguf_type::u32), one(value));
}

void gguf_metadata::set(std::string_view key, std::uint64_t value)
{
    set_raw(key, number(gguf_type::u64), one(value));
}

void gguf_metadata::set(std::string_view key, std::int32_t value)
{
    set_raw(key, number(gguf_type::i32), one(value));
}

void gguf_metadata::set(std::string_view key, float value)
{
    set_raw(key, number(gguf_type::f32), one(value));
}

void gguf_metadata::set(std::string_view key, double value)
{
    set_raw(key, number(gguf_type::f64), one(value));
}

void gguf_metadata::set(std::string_view key, bool value)
{
    set_raw(key, number(gguf_type::boolean), one(std::uint8_t{value}));
}

void gguf_metadata::set(std::string_view key, std::string_view value)
{
    std::vector<std::byte> bytes;
    append_gguf_string(bytes, value);
    set_raw(key, number(gguf_type::string), std::move(bytes));
}

void gguf_metadata::set(std::string_view key, std::span<std::string const> values)
{
    std::vector<std::byte> bytes;
    append(bytes, number(gguf_type::string));
    append(bytes, std::uint64_t{values.size()});
    for (std::string const& value : values)
        append_gguf_string(bytes, value);
    set_raw(key, number(gguf_type::array), std::move(bytes));
}

void gguf_metadata::set(std::string_view key, std::span<std::int32_t const> values)
{
    set_raw(key, number(gguf_type::array), many(gguf_type::i32, values));
}

void gguf_metadata::set(std::string_view key, std::span<std::uint32_t const> values)
{
    set_raw(key, number(gguf_type::array), many(gguf_type::u32, values));
}

void gguf_metadata::set(std::string_view key, std::span<float const> values)
{
    set_raw(key, number(gguf_type::array), many(gguf_type::f32, values));
}

void gguf_metadata::set(std::string_view key, std::span<std::byte const> values)
{
    set_raw(key, number(gguf_type::array), many(gguf_type::u8, values));
}

void gguf_metadata::copy(gguf_entry const& from)
{
    std::vector<std::byte> value;
    if (from.type == gguf_type::array) {
        append(value, number(from.element));
        append(value, from.count);
    }
    value.insert(value.end(), from.payload.begin(), from.payload.end());
    set_raw(from.key, number(from.type), std::move(value));
}

void gguf_metadata::erase(std::string_view key)
{
    std::erase_if(entries, [&](entry const& e) { return e.key == key; });
}

bool gguf_metadata::has(std::string_view key) const noexcept
{
    return std::ranges::find(entries, key, &entry::key) != entries.end();
}

void gguf_metadata::append_to(std::vector<std::byte>& out) const
{
    for (entry const& e : entries) {
        append_gguf_string(out, e.key);
        append(out, e.type);
        out.insert(out.end(), e.value.begin(), e.value.end());
    }
}

} // namespace plait
