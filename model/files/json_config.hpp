#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// An object of a JSON file of settings, such as `config.json`: typed fields, and errors that name the file and the
/// path of the field ("config.json: field 'rope_scaling.factor': ..."). A field that is null counts as absent, as
/// writers use it. Immutable and cheap to copy: copies and nested objects share the text.
/// A file is at most 16 MiB, 64 levels and a million values; a key that appears twice is an error.
class json_config {
public:
    /// Errors: errc::not_found, errc::io, errc::bad_file (not JSON, too large, not an object).
    static json_config open(std::filesystem::path const& path);
    static json_config parse(std::string_view text, std::string source = "config");

    /// Names the file in errors.
    std::string const& source() const noexcept;
    /// "config.json: field 'rope_scaling.factor'", for an error about a field of this object.
    std::string where(std::string_view key) const;

    bool has(std::string_view key) const noexcept;
    /// The keys of this object whose values are not null, in the order of the file.
    std::vector<std::string_view> keys() const;

    /// The value of `key`. A number takes integers too, and an integer a number without a fraction: writers differ.
    /// Errors: errc::bad_file where the field is absent or of another kind.
    std::int64_t integer(std::string_view key) const;
    double number(std::string_view key) const; ///< may be infinite or NaN
    bool boolean(std::string_view key) const;
    std::string const& string(std::string_view key) const;
    std::vector<std::int64_t> integers(std::string_view key) const;
    std::vector<double> numbers(std::string_view key) const;
    std::vector<bool> booleans(std::string_view key) const;
    std::vector<std::string> strings(std::string_view key) const;
    json_config object(std::string_view key) const;
    std::vector<json_config> objects(std::string_view key) const; ///< an array of objects

    /// The same, or `fallback` where the field is absent.
    std::int64_t integer(std::string_view key, std::int64_t fallback) const;
    double number(std::string_view key, double fallback) const;
    bool boolean(std::string_view key, bool fallback) const;
    std::string string(std::string_view key, std::string_view fallback) const;
    /// The nested object, or nothing where the field is absent.
    std::optional<json_config> find_object(std::string_view key) const;

    /// Of what kind a field is, for those that writers fill in several ways.
    bool is_integer(std::string_view key) const noexcept; ///< also a number without a fraction
    bool is_number(std::string_view key) const noexcept;
    bool is_string(std::string_view key) const noexcept;
    bool is_boolean(std::string_view key) const noexcept;
    bool is_array(std::string_view key) const noexcept;
    bool is_object(std::string_view key) const noexcept;

    /// The text of the whole file.
    std::string_view text() const noexcept;

private:
    struct value;
    struct member;
    struct document;
    class builder;

    json_config() = default;
    value const* find(std::string_view key) const noexcept;
    value const& require(std::string_view key) const;
    template<class T, class Read>
    std::vector<T> list(std::string_view key, Read read) const;

    std::shared_ptr<document const> all_;
    value const* here_ = nullptr; ///< of `all_`
    std::string path_;            ///< of this object: "" or "rope_scaling."
};

} // namespace plait
