#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

/// What is heard of a JSON text while it is read, from its start to its end.
class json_listener {
public:
    virtual ~json_listener() = default;

    virtual void null() = 0;
    virtual void boolean(bool value) = 0;
    virtual void integer(std::int64_t value) = 0;
    /// A number with a fraction or an exponent, an integer of more than 64 bits, or one of the tokens of Python's
    /// writer: NaN, Infinity, -Infinity.
    virtual void number(double value) = 0;
    virtual void string(std::string value) = 0;
    virtual void begin_object() = 0;
    virtual void key(std::string name) = 0;
    virtual void end_object() = 0;
    virtual void begin_array() = 0;
    virtual void end_array() = 0;
};

/// Reads `text`, one JSON value (RFC 8259) in UTF-8, and tells `to` what it holds. Stricter than most readers: a key
/// that an object has twice is an error, and so is nesting beyond `depth` levels. More lenient in one thing: it takes
/// Python's NaN and Infinity. Errors: errc::bad_file with `source`, the byte, and what is wrong there; what `to`
/// throws.
void read_json(std::string_view text, std::string const& source, std::size_t depth, json_listener& to);

} // namespace plait
