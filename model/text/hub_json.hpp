#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

/// A value of a JSON document and the way to it, which errors name. Lives as long as its document.
class hub_value {
public:
    /// The way to this value, such as "tokenizer.json: model.vocab"; of the document itself "tokenizer.json: ".
    std::string const& path() const noexcept { return path_; }

    bool is_array() const noexcept;
    bool is_object() const noexcept;
    bool is_text() const noexcept;
    bool is_number() const noexcept;
    /// Elements or members; 0 for other values.
    std::size_t size() const noexcept;

    /// True where this is an object with a member of that name that is not null.
    bool has(std::string_view name) const;
    std::optional<hub_value> find(std::string_view name) const;
    /// Errors: errc::bad_file where there is none.
    hub_value at(std::string_view name) const;
    hub_value at(std::size_t index) const;
    /// Every element of an array, every member of an object. Errors: errc::bad_file for another value.
    void for_each(std::function<void(hub_value const&)> const& each) const;
    void for_each_member(std::function<void(std::string const&, hub_value const&)> const& each) const;

    /// The value. Errors: errc::bad_file where it is of another type; integer() takes whole numbers only.
    std::string const& text() const;
    bool boolean() const;
    std::int64_t integer() const;
    double number() const;
    /// The member's boolean, or `fallback` where it is absent or null.
    bool flag(std::string_view name, bool fallback) const;

    /// Errors about this value: errc::bad_file, errc::unsupported.
    [[noreturn]] void bad(std::string const& what) const;
    [[noreturn]] void unsupported(std::string const& what = "") const;

private:
    friend class hub_document;
    hub_value(void const* value, std::string path) noexcept;

    void const* value_; // of the JSON library, which stays out of headers
    std::string path_;
};

/// A JSON document from outside.
class hub_document {
public:
    /// The deepest nesting that is read: published files have up to ten.
    static constexpr std::size_t deepest = 64;

    /// Errors: errc::bad_file, named `source`, where `text` is not JSON, not UTF-8 or too deep.
    hub_document(std::string_view text, std::string source);
    hub_document(hub_document&&) noexcept;
    ~hub_document();

    hub_value root() const;

private:
    struct content;
    std::unique_ptr<content const> content_;
    std::string source_;
};

} // namespace plait
