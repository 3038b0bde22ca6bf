#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <plait/model/chat/jinja/budget.hpp>
#include <plait/model/text/byte_range.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace plait::jinja {

struct text;
struct sequence;
struct mapping;
struct name_space;
struct loop_state;
struct function;

/// Nothing there: a missing name, attribute or argument. Prints as empty; any other use raises with `hint`.
struct undefined {
    std::shared_ptr<std::string const> hint;
};

struct none {};

/// A template's value with Python's meaning: immutable and shared, but for namespaces and loops, which live and die
/// with one rendering. Copying is cheap. Integers are 64 bits wide; overflow is an error where Python would go on.
class value {
public:
    using storage =
        std::variant<undefined, none, bool, std::int64_t, double, std::shared_ptr<text const>,
                     std::shared_ptr<sequence const>, std::shared_ptr<mapping const>, std::shared_ptr<name_space>,
                     std::shared_ptr<loop_state>, std::shared_ptr<function const>>;

    value() = default; ///< undefined
    value(undefined u)
        : data_(std::move(u))
    {
    }
    value(none)
        : data_(none{})
    {
    }
    value(bool b)
        : data_(b)
    {
    }
    value(std::int64_t i)
        : data_(i)
    {
    }
    value(double d)
        : data_(d)
    {
    }
    value(std::shared_ptr<text const> s)
        : data_(std::move(s))
    {
    }
    value(std::shared_ptr<sequence const> s)
        : data_(std::move(s))
    {
    }
    value(std::shared_ptr<mapping const> m)
        : data_(std::move(m))
    {
    }
    value(std::shared_ptr<name_space> n)
        : data_(std::move(n))
    {
    }
    value(std::shared_ptr<loop_state> l)
        : data_(std::move(l))
    {
    }
    value(std::shared_ptr<function const> f)
        : data_(std::move(f))
    {
    }
    value(char const*) = delete; // would become a bool

    bool is_undefined() const noexcept { return std::holds_alternative<undefined>(data_); }
    bool is_none() const noexcept { return std::holds_alternative<none>(data_); }
    bool is_string() const noexcept { return std::holds_alternative<std::shared_ptr<text const>>(data_); }
    bool is_sequence() const noexcept { return std::holds_alternative<std::shared_ptr<sequence const>>(data_); }
    bool is_mapping() const noexcept { return std::holds_alternative<std::shared_ptr<mapping const>>(data_); }
    bool is_function() const noexcept { return std::holds_alternative<std::shared_ptr<function const>>(data_); }
    bool is_boolean() const noexcept { return std::holds_alternative<bool>(data_); }
    bool is_real() const noexcept { return std::holds_alternative<double>(data_); }
    bool is_integer() const noexcept { return std::holds_alternative<std::int64_t>(data_) || is_boolean(); }
    bool is_number() const noexcept { return is_integer() || is_real(); }

    /// The alternative asked for; the caller has checked that it is there.
    text const& string() const { return *std::get<std::shared_ptr<text const>>(data_); }
    jinja::sequence const& items() const { return *std::get<std::shared_ptr<jinja::sequence const>>(data_); }
    jinja::mapping const& members() const { return *std::get<std::shared_ptr<jinja::mapping const>>(data_); }
    jinja::function const& callee() const { return *std::get<std::shared_ptr<jinja::function const>>(data_); }
    jinja::name_space* as_name_space() const;
    jinja::loop_state* as_loop() const;

    /// The integer, or a boolean as 0 or 1.
    std::int64_t integer() const;

    /// Any number as a double.
    double real() const;

    storage const& data() const noexcept { return data_; }

private:
    storage data_;
};

/// UTF-8 (always valid) with its length in code points, which is what Python counts, indexes and slices by.
struct text {
    std::string bytes;
    std::size_t length;
    std::vector<byte_range> foreign{}; ///< what is not the template's own text; ascending, apart, none empty

    bool ascii() const noexcept { return length == bytes.size(); }
};

/// What Python would have here. All are immutable lists of items; the kind decides how they print, compare and index.
enum class sequence_kind : std::uint8_t { list, tuple, range, iterator, keys, values, items };

struct sequence {
    sequence_kind kind;
    unsigned depth; ///< 1 + the deepest item, so that recursion over values is bounded
    std::vector<value> items;
    bool foreign = false; ///< an item is, wholly or in part

    bool indexable() const noexcept { return kind <= sequence_kind::range; }
};

/// A dictionary in insertion order.
struct mapping {
    unsigned depth = 1;
    bool foreign = false; ///< a key or an item is, wholly or in part
    std::vector<std::pair<value, value>> items;

    /// The value under `key` (equal as Python compares, so 1, 1.0 and True are one key), or null.
    value const* find(budget& b, value const& key) const;
    value const* find(std::string_view key) const;

    /// Replaces the value under `key` or appends.
    void put(budget& b, value key, value item);

private:
    std::size_t position(std::string_view key) const;

    // Keys point into the texts that `items` owns. Small dictionaries are searched without it. Ordered, not hashed:
    // keys come from outside and could be chosen to collide.
    std::map<std::string_view, std::size_t> strings_;
};

/// What `namespace()` returns: the one thing a template may change in place.
struct name_space {
    std::vector<std::pair<std::string, value>> items;

    value const* find(std::string_view name) const;
    void put(std::string_view name, value item);
};

/// The special variable `loop`.
struct loop_state {
    std::shared_ptr<sequence const> items;
    std::size_t index = 0;
    value changed; ///< arguments of the last `loop.changed()`
};

/// The depth a container of `item` would add to: 0 for scalars.
unsigned depth_of(value const& item);

/// Whether a text in `item` came from the conversation, wholly or in part, or could have.
bool holds_foreign(value const& item);

constexpr std::size_t object_bytes = 64; // control block, header and allocator slack of one shared object

/// Makes values, charging the budget for them. `make_text` requires valid UTF-8; its text is foreign as a whole inside
/// a `derivation` that says so. Operations that keep the two apart use text_builder.
value make_text(budget& b, std::string bytes);
value make_sequence(budget& b, sequence_kind kind, std::vector<value> items);
value make_mapping(budget& b, mapping m);
value make_undefined(budget& b, std::string hint);

/// The name Python gives the value's type: "str", "int", "dict", ...
std::string_view type_name(value const& v);

/// Python's bool(v).
bool truthy(value const& v);

/// Python's a == b. Values may share parts, so the work is counted.
bool equal(budget& b, value const& left, value const& right);

/// Python's a is b, as far as templates can see it.
bool same(value const& a, value const& b);

/// Appends Python's str(v). Throws `failure` past the output limit or for a value that has no stable text.
void append_str(budget& b, std::string& out, value const& v);

/// Appends Python's repr(v), what a string looks like inside a printed list.
void append_repr(budget& b, std::string& out, value const& v);

/// Python's str(v).
std::string to_str(budget& b, value const& v);

/// Python's repr of a float: the shortest digits that read back as the same number.
std::string float_repr(double d);

/// Throws for an undefined value that is used for more than printing.
[[noreturn]] void fail_undefined(value const& v);

} // namespace plait::jinja
