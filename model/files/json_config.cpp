#include <plait/model/files/json_config.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/json_events.hpp>
#include <plait/model/files/mapped_file.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

namespace plait {
namespace {

constexpr std::size_t max_bytes = 16 << 20;
constexpr std::size_t max_depth = 64;
// The largest files of settings list some ten thousand added tokens, a few fields each.
constexpr std::size_t max_values = 1 << 20;

} // namespace

struct json_config::value {
    using array = std::vector<value>;
    using object = std::vector<member>;
    std::variant<std::monostate, bool, std::int64_t, double, std::string, array, object> is;

    template<class T>
    T const* as() const noexcept
    {
        return std::get_if<T>(&is);
    }

    bool null() const noexcept { return as<std::monostate>() != nullptr; }

    std::string_view kind() const noexcept
    {
        constexpr std::string_view kinds[] = {"null",     "a boolean", "an integer", "a number",
                                              "a string", "an array",  "an object"};
        return kinds[is.index()];
    }

    std::optional<double> number() const noexcept
    {
        if (auto const* whole = as<std::int64_t>()) return static_cast<double>(*whole);
        if (auto const* real = as<double>()) return *real;
        return std::nullopt;
    }

    std::optional<std::int64_t> integer() const noexcept
    {
        if (auto const* whole = as<std::int64_t>()) return *whole;
        // Up to 2^53 a double holds every integer, so that this one is the one that was meant.
        auto const* real = as<double>();
        if (real != nullptr && std::fabs(*real) <= 0x1p53 && *real == std::trunc(*real))
            return static_cast<std::int64_t>(*real);
        return std::nullopt;
    }
};

struct json_config::member {
    std::string name;
    value what;
};

struct json_config::document {
    std::string source;
    std::string text;
    value root;
};

/// Builds the tree as the text is read.
class json_config::builder final : public json_listener {
public:
    builder(std::string const& source, value& root)
        : source_(source)
    {
        open_.push_back(&root);
    }

    void null() override { add({}); }
    void boolean(bool what) override { add({what}); }
    void integer(std::int64_t what) override { add({what}); }
    void number(double what) override { add({what}); }
    void string(std::string what) override { add({std::move(what)}); }
    void begin_object() override { open({value::object()}); }
    void end_object() override { open_.pop_back(); }
    void begin_array() override { open({value::array()}); }
    void end_array() override { open_.pop_back(); }
    void key(std::string name) override { key_ = std::move(name); }

private:
    value& add(value what)
    {
        if (++count_ > max_values)
            throw error(errc::bad_file, source_ + ": more than " + std::to_string(max_values) + " values");
        value& parent = *open_.back();
        if (auto* members = std::get_if<value::object>(&parent.is)) {
            members->push_back({std::move(key_), std::move(what)});
            return members->back().what;
        }
        if (auto* items = std::get_if<value::array>(&parent.is)) {
            items->push_back(std::move(what));
            return items->back();
        }
        parent = std::move(what); // the root
        return parent;
    }

    // A container's address holds while it is open: what follows is added inside it.
    void open(value what) { open_.push_back(&add(std::move(what))); }

    std::string const& source_;
    std::vector<value*> open_;
    std::string key_;
    std::size_t count_ = 0;
};

json_config json_config::parse(std::string_view text, std::string source)
{
    if (text.size() > max_bytes)
        throw error(errc::bad_file, source + ": " + std::to_string(text.size()) + " bytes; at most " +
                                        std::to_string(max_bytes) + " are read");
    auto all = std::make_shared<document>();
    all->source = std::move(source);
    all->text = text;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // some editors begin a file with U+FEFF
    builder into(all->source, all->root);
    read_json(text, all->source, max_depth, into);
    if (all->root.as<value::object>() == nullptr)
        throw error(errc::bad_file, all->source + ": is " + std::string(all->root.kind()) + ", expected an object");
    json_config out;
    out.here_ = &all->root;
    out.all_ = std::move(all);
    return out;
}

json_config json_config::open(std::filesystem::path const& path)
{
    return parse(read_text_file(path, max_bytes), path.string());
}

std::string const& json_config::source() const noexcept
{
    return all_->source;
}

std::string_view json_config::text() const noexcept
{
    return all_->text;
}

std::string json_config::where(std::string_view key) const
{
    return all_->source + ": field " + quote(path_ + std::string(key));
}

json_config::value const* json_config::find(std::string_view key) const noexcept
{
    auto const& members = *here_->as<value::object>();
    auto const found = std::ranges::find(members, key, &member::name);
    return found != members.end() && !found->what.null() ? &found->what : nullptr;
}

json_config::value const& json_config::require(std::string_view key) const
{
    if (auto const* found = find(key)) return *found;
    throw error(errc::bad_file, where(key) + ": missing");
}

bool json_config::has(std::string_view key) const noexcept
{
    return find(key) != nullptr;
}

std::vector<std::string_view> json_config::keys() const
{
    auto const& members = *here_->as<value::object>();
    std::vector<std::string_view> out;
    out.reserve(members.size());
    for (auto const& m : members)
        if (!m.what.null()) out.push_back(m.name);
    return out;
}

namespace {

[[noreturn]] void wrong_kind(std::string const& where, std::string_view kind, char const* expected)
{
    throw error(errc::bad_file, where + ": is " + std::string(kind) + ", expected " + expected);
}

} // namespace

std::int64_t json_config::integer(std::string_view key) const
{
    auto const& found = require(key);
    if (auto const whole = found.integer()) return *whole;
    wrong_kind(where(key), found.kind(), "an integer");
}

double json_config::number(std::string_view key) const
{
    auto const& found = require(key);
    if (auto const real = found.number()) return *real;
    wrong_kind(where(key), found.kind(), "a number");
}

bool json_config::boolean(std::string_view key) const
{
    auto const& found = require(key);
    if (auto const* flag = found.as<bool>()) return *flag;
    wrong_kind(where(key), found.kind(), "a boolean");
}

std::string const& json_config::string(std::string_view key) const
{
    auto const& found = require(key);
    if (auto const* text = found.as<std::string>()) return *text;
    wrong_kind(where(key), found.kind(), "a string");
}

template<class T, class Read>
std::vector<T> json_config::list(std::string_view key, Read read) const
{
    auto const& found = require(key);
    auto const* items = found.as<value::array>();
    if (items == nullptr) wrong_kind(where(key), found.kind(), "an array");
    std::vector<T> out;
    out.reserve(items->size());
    for (auto const& item : *items)
        out.push_back(read(item, std::string(key) + "[" + std::to_string(out.size()) + "]"));
    return out;
}

std::vector<std::int64_t> json_config::integers(std::string_view key) const
{
    return list<std::int64_t>(key, [&](value const& item, std::string const& name) {
        auto const whole = item.integer();
        if (!whole) wrong_kind(where(name), item.kind(), "an integer");
        return *whole;
    });
}

std::vector<double> json_config::numbers(std::string_view key) const
{
    return list<double>(key, [&](value const& item, std::string const& name) {
        auto const real = item.number();
        if (!real) wrong_kind(where(name), item.kind(), "a number");
        return *real;
    });
}

std::vector<bool> json_config::booleans(std::string_view key) const
{
    return list<bool>(key, [&](value const& item, std::string const& name) {
        auto const* flag = item.as<bool>();
        if (flag == nullptr) wrong_kind(where(name), item.kind(), "a boolean");
        return *flag;
    });
}

std::vector<std::string> json_config::strings(std::string_view key) const
{
    return list<std::string>(key, [&](value const& item, std::string const& name) {
        auto const* text = item.as<std::string>();
        if (text == nullptr) wrong_kind(where(name), item.kind(), "a string");
        return *text;
    });
}

json_config json_config::object(std::string_view key) const
{
    auto const& found = require(key);
    if (found.as<value::object>() == nullptr) wrong_kind(where(key), found.kind(), "an object");
    json_config out = *this;
    out.here_ = &found;
    out.path_ += std::string(key) + ".";
    return out;
}

std::vector<json_config> json_config::objects(std::string_view key) const
{
    return list<json_config>(key, [&](value const& item, std::string const& name) {
        if (item.as<value::object>() == nullptr) wrong_kind(where(name), item.kind(), "an object");
        json_config out = *this;
        out.here_ = &item;
        out.path_ += name + ".";
        return out;
    });
}

std::int64_t json_config::integer(std::string_view key, std::int64_t fallback) const
{
    return has(key) ? integer(key) : fallback;
}

double json_config::number(std::string_view key, double fallback) const
{
    return has(key) ? number(key) : fallback;
}

bool json_config::boolean(std::string_view key, bool fallback) const
{
    return has(key) ? boolean(key) : fallback;
}

std::string json_config::string(std::string_view key, std::string_view fallback) const
{
    return has(key) ? string(key) : std::string(fallback);
}

std::optional<json_config> json_config::find_object(std::string_view key) const
{
    if (!has(key)) return std::nullopt;
    return object(key);
}

bool json_config::is_integer(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->integer().has_value();
}

bool json_config::is_number(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->number().has_value();
}

bool json_config::is_string(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->as<std::string>() != nullptr;
}

bool json_config::is_boolean(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->as<bool>() != nullptr;
}

bool json_config::is_array(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->as<value::array>() != nullptr;
}

bool json_config::is_object(std::string_view key) const noexcept
{
    auto const* found = find(key);
    return found != nullptr && found->as<value::object>() != nullptr;
}

} // namespace plait
