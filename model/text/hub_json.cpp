#include <plait/model/text/hub_json.hpp>

#include <plait/actors/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plait {
namespace {

using nlohmann::json;

json const& as_json(void const* value) noexcept
{
    return *static_cast<json const*>(value);
}

// How deep brackets nest outside of strings; malformed text may give any number.
std::size_t depth(std::string_view text) noexcept
{
    std::size_t deepest = 0, now = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char const c = text[i];
        if (in_string) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            deepest = std::max(deepest, ++now);
        } else if ((c == '}' || c == ']') && now > 0) {
            --now;
        }
    }
    return deepest;
}

} // namespace

struct hub_document::content {
    json value;
};

hub_document::hub_document(std::string_view text, std::string source)
    : source_(std::move(source))
{
    if (depth(text) > deepest) {
        throw error(errc::bad_file, source_ + ": nested deeper than " + std::to_string(deepest));
    }
    try {
        content_ = std::make_unique<content const>(content{json::parse(text)});
    } catch (json::exception const& e) {
        throw error(errc::bad_file, source_ + ": " + e.what());
    }
}

hub_document::hub_document(hub_document&&) noexcept = default;
hub_document::~hub_document() = default;

hub_value hub_document::root() const
{
    return {&content_->value, source_ + ": "};
}

hub_value::hub_value(void const* value, std::string path) noexcept
    : value_(value)
    , path_(std::move(path))
{
}

bool hub_value::is_array() const noexcept
{
    return as_json(value_).is_array();
}

bool hub_value::is_object() const noexcept
{
    return as_json(value_).is_object();
}

bool hub_value::is_text() const noexcept
{
    return as_json(value_).is_string();
}

bool hub_value::is_number() const noexcept
{
    return as_json(value_).is_number();
}

std::size_t hub_value::size() const noexcept
{
    return as_json(value_).is_structured() ? as_json(value_).size() : 0;
}

std::optional<hub_value> hub_value::find(std::string_view name) const
{
    auto const& value = as_json(value_);
    if (!value.is_object()) bad("not an object");
    auto const found = value.find(name);
    if (found == value.end() || found->is_null()) return std::nullopt;
    std::string path = path_;
    if (!path.ends_with(": ")) path += '.';
    return hub_value(&*found, path.append(name));
}

bool hub_value::has(std::string_view name) const
{
    auto const& value = as_json(value_);
    if (!value.is_object()) return false;
    auto const found = value.find(name);
    return found != value.end() && !found->is_null();
}

hub_value hub_value::at(std::string_view name) const
{
    if (auto found = find(name)) return *std::move(found);
    std::string path = path_;
    if (!path.ends_with(": ")) path += '.';
    throw error(errc::bad_file, path.append(name) + ": missing");
}

hub_value hub_value::at(std::size_t index) const
{
    auto const& value = as_json(value_);
    if (!value.is_array() || index >= value.size()) bad("no element " + std::to_string(index));
    return {&value[index], path_ + "[" + std::to_string(index) + "]"};
}

void hub_value::for_each(std::function<void(hub_value const&)> const& each) const
{
    auto const& value = as_json(value_);
    if (!value.is_array()) bad("not an array");
    for (std::size_t i = 0; i < value.size(); ++i)
        each({&value[i], path_ + "[" + std::to_string(i) + "]"});
}

void hub_value::for_each_member(std::function<void(std::string const&, hub_value const&)> const& each) const
{
    auto const& value = as_json(value_);
    if (!value.is_object()) bad("not an object");
    for (auto member = value.begin(); member != value.end(); ++member)
        each(member.key(), {&member.value(), path_ + "." + member.key()});
}

std::string const& hub_value::text() const
{
    if (!is_text()) bad("not a string");
    return as_json(value_).get_ref<std::string const&>();
}

bool hub_value::boolean() const
{
    if (!as_json(value_).is_boolean()) bad("not a boolean");
    return as_json(value_).get<bool>();
}

std::int64_t hub_value::integer() const
{
    auto const& value = as_json(value_);
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
        bad("not a whole number");
    }
    return value.get<std::int64_t>();
}

double hub_value::number() const
{
    if (!is_number()) bad("not a number");
    return as_json(value_).get<double>();
}

bool hub_value::flag(std::string_view name, bool fallback) const
{
    auto const found = find(name);
    return found ? found->boolean() : fallback;
}

void hub_value::bad(std::string const& what) const
{
    throw error(errc::bad_file, path_ + (path_.ends_with(": ") ? "" : ": ") + what);
}

void hub_value::unsupported(std::string const& what) const
{
    auto const& value = as_json(value_);
    std::string text = what;
    if (text.empty())
        text = value.is_structured() ? "this kind"
                                     : value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 64);
    throw error(errc::unsupported, path_ + (path_.ends_with(": ") ? "" : ": ") + text);
}

} // namespace plait
