#include <algorithm>
#include <limits>
#include <plait/model/chat/jinja/formatting.hpp>
#include <plait/model/chat/jinja/function.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/methods.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/strings.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>

namespace plait::jinja {

namespace {

using entry = std::pair<std::string_view, function::builtin>;

std::string_view bytes(value const& v)
{
    return v.string().bytes;
}

template<std::string (*convert)(std::string_view)>
value converted(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("str method", given, {}, 0);
    in.cost().classify(bytes(self).size());
    return make_text(in.cost(), convert(bytes(self)));
}

template<bool left, bool right>
value stripped(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("strip", given, {""}, 0);
    if (!a.given(0)) return strip_text(in.cost(), self, nullptr, left, right);
    auto const chars = a.string(0, {});
    return strip_text(in.cost(), self, &chars, left, right);
}

template<bool from_right>
value split_method(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("split", given, {"sep", "maxsplit"}, 0);
    auto const limit = a.integer(1, -1);
    if (!a.given(0)) {
        in.cost().classify(bytes(self).size());
        return text_list(in.cost(), self.string(), split_space(bytes(self), limit, from_right));
    }
    auto const separator = a.string(0, {});
    if (separator.empty()) throw failure("the separator of split() is empty");
    in.cost().search(bytes(self).size());
    return text_list(in.cost(), self.string(), split(bytes(self), separator, limit, from_right));
}

value splitlines(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("splitlines", given, {"keepends"}, 0);
    in.cost().search(bytes(self).size());
    return text_list(in.cost(), self.string(), split_lines(bytes(self), a.boolean(0, false)));
}

template<bool from_right>
value partition(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("partition", given, {""}, 1);
    auto const text = bytes(self);
    auto const separator = a.string(0, {});
    if (separator.empty()) throw failure("the separator of partition() is empty");
    in.cost().search(text.size());
    auto& b = in.cost();
    auto const at = from_right ? find_last(text, separator) : find(text, separator);
    std::vector<value> parts;
    if (at != std::string_view::npos) {
        for (auto const part :
             {text.substr(0, at), text.substr(at, separator.size()), text.substr(at + separator.size())})
            parts.push_back(make_part(b, self.string(), part));
    } else {
        parts.assign(3, make_text(b, {}));
        parts[from_right ? 2 : 0] = self;
    }
    return make_sequence(b, sequence_kind::tuple, std::move(parts));
}

/// The part of the text that the optional arguments start and end (in characters) select, as byte offsets; nothing
/// when start lies behind the end of the text.
std::optional<std::pair<std::size_t, std::size_t>> window(text const& s, bound_arguments const& a)
{
    auto const n = static_cast<std::int64_t>(s.length);
    auto const place = [&](std::size_t argument, std::int64_t otherwise) {
        auto const i = a.given(argument) ? a.integer(argument, 0) : otherwise;
        return i < 0 ? std::max<std::int64_t>(i < -n ? 0 : i + n, 0) : i;
    };
    auto const start = place(1, 0);
    auto const end = std::min(place(2, n), n);
    if (start > n || start > end) return std::nullopt;
    auto const offset = [&](std::int64_t i) {
        return s.ascii() ? static_cast<std::size_t>(i) : offset_of(s.bytes, static_cast<std::size_t>(i));
    };
    return std::pair(offset(start), offset(end));
}

template<bool at_end>
value affix(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a(at_end ? "endswith" : "startswith", given, {"", "", ""}, 1);
    if (!self.string().ascii()) in.cost().search(bytes(self).size());
    auto const selected = window(self.string(), a);
    std::string_view const text =
        selected ? bytes(self).substr(selected->first, selected->second - selected->first) : std::string_view();
    auto const matches = [&](value const& v) {
        if (v.is_undefined()) fail_undefined(v);
        if (!v.is_string()) throw failure("startswith() and endswith() take strings");
        auto const part = bytes(v);
        in.cost().scan(part.size());
        return selected && (at_end ? text.ends_with(part) : text.starts_with(part));
    };
    auto const& argument = *a[0];
    if (!argument.is_sequence() || argument.items().kind != sequence_kind::tuple) return matches(argument);
    auto const& options = argument.items().items;
    return std::any_of(options.begin(), options.end(), matches);
}

template<bool last, bool must>
value find_method(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("find", given, {"", "", ""}, 1);
    auto const part = a.string(0, {});
    in.cost().search(bytes(self).size());
    auto const selected = window(self.string(), a);
    if (selected) {
        auto const text = bytes(self).substr(0, selected->second);
        auto const inside = text.substr(selected->first);
        auto const at = last ? find_last(inside, part) : find(inside, part);
        if (at != std::string_view::npos)
            return static_cast<std::int64_t>(code_points(text.substr(0, selected->first + at)));
    }
    if (must) throw failure("the substring is not found");
    return std::int64_t{-1};
}

value count_method(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("count", given, {"", "", ""}, 1);
    auto const part = a.string(0, {});
    in.cost().search(bytes(self).size());
    auto const selected = window(self.string(), a);
    if (!selected) return std::int64_t{0};
    auto const text = bytes(self).substr(selected->first, selected->second - selected->first);
    if (part.empty()) return static_cast<std::int64_t>(code_points(text) + 1);
    return static_cast<std::int64_t>(count(text, part, std::numeric_limits<std::size_t>::max()));
}

value replace(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("replace", given, {"", "", ""}, 2);
    auto const old = a.string(0, {});
    a.string(1, {}); // checks that it is one
    return replace_text(in.cost(), self.string(), old, a[1]->string(), a.integer(2, -1));
}

value join(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("join", given, {""}, 1);
    return join_texts(in.cost(), self.string(), *iterate(in.cost(), *a[0]), true);
}

template<bool end>
value remove_affix(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("removeprefix", given, {""}, 1);
    auto text = bytes(self);
    auto const part = a.string(0, {});
    if (!(end ? text.ends_with(part) : text.starts_with(part))) return self;
    return make_part(in.cost(), self.string(),
                     end ? text.substr(0, text.size() - part.size()) : text.substr(part.size()));
}

template<char align>
value justified(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("justification", given, {"", ""}, 1);
    auto const fill = a.string(1, " ");
    if (code_points(fill) != 1) throw failure("the fill takes one character");
    return pad_text(in.cost(), self.string(), a.integer(0, 0), align, fill);
}

value zfill(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("zfill", given, {""}, 1);
    auto const text = bytes(self);
    auto const sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? std::size_t{1} : std::size_t{0};
    auto const digits = make_text(in.cost(), std::string(text.substr(sign)));
    auto const padded =
        pad_text(in.cost(), digits.string(), a.integer(0, 0) - static_cast<std::int64_t>(sign), '>', "0");
    return make_text(in.cost(), std::string(text.substr(0, sign)).append(padded.string().bytes));
}

value format(interpreter& in, value const& self, arguments const& given)
{
    return brace_format(in.cost(), bytes(self), given);
}

template<bool (*holds)(char32_t), bool empty>
value all_characters(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("str test", given, {}, 0);
    auto const text = bytes(self);
    in.cost().classify(text.size());
    if (text.empty()) return empty;
    for (std::size_t at = 0; at < text.size();) {
        if (!holds(next_point(text, at))) return false;
    }
    return true;
}

bool is_alphanumeric(char32_t c)
{
    return is_alpha(c) || is_numeric(c);
}
bool is_ascii(char32_t c)
{
    return c < 0x80;
}

template<bool upper>
value all_cased(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("str test", given, {}, 0);
    in.cost().classify(bytes(self).size());
    return upper ? is_upper_text(bytes(self)) : is_lower_text(bytes(self));
}

value istitle(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("istitle", given, {}, 0);
    auto const text = bytes(self);
    in.cost().classify(text.size());
    bool inside = false;
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const c = next_point(text, at);
        bool const starts = is_upper(c) || is_title(c);
        bool const goes_on = is_lower(c);
        if ((starts && inside) || (goes_on && !inside)) return false;
        inside = starts || goes_on;
        any |= inside;
    }
    return any;
}

value not_supported(interpreter&, value const&, arguments const&)
{
    throw failure("this method is not supported in templates");
}

constexpr entry string_methods[] = {
    {"capitalize", converted<capitalize>},
    {"casefold", not_supported},
    {"center", justified<'^'>},
    {"count", count_method},
    {"encode", not_supported},
    {"endswith", affix<true>},
    {"expandtabs", not_supported},
    {"find", find_method<false, false>},
    {"format", format},
    {"format_map", not_supported},
    {"index", find_method<false, true>},
    {"isalnum", all_characters<is_alphanumeric, false>},
    {"isalpha", all_characters<is_alpha, false>},
    {"isascii", all_characters<is_ascii, true>},
    {"isdecimal", all_characters<is_decimal, false>},
    {"isdigit", all_characters<is_digit, false>},
    {"isidentifier", not_supported},
    {"islower", all_cased<false>},
    {"isnumeric", all_characters<is_numeric, false>},
    {"isprintable", all_characters<is_printable, true>},
    {"isspace", all_characters<is_space, false>},
    {"istitle", istitle},
    {"isupper", all_cased<true>},
    {"join", join},
    {"ljust", justified<'<'>},
    {"lower", converted<to_lower>},
    {"lstrip", stripped<true, false>},
    {"maketrans", not_supported},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", justified<'>'>},
    {"rpartition", partition<true>},
    {"rsplit", split_method<true>},
    {"rstrip", stripped<false, true>},
    {"split", split_method<false>},
    {"splitlines", splitlines},
    {"startswith", affix<false>},
    {"strip", stripped<true, true>},
    {"swapcase", converted<swap_case>},
    {"title", converted<to_title>},
    {"translate", not_supported},
    {"upper", converted<to_upper>},
    {"zfill", zfill},
};

template<sequence_kind kind>
value view(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("dict view", given, {}, 0);
    return members_view(in.cost(), self.members(), kind);
}

value get(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("get", given, {"", ""}, 1);
    if (!hashable(in.cost(), *a[0])) throw failure(std::string(type_name(*a[0])) + " cannot be a key");
    auto const* found = self.members().find(in.cost(), *a[0]);
    return found ? *found : a[1] ? *a[1] : value(none{});
}

value copy(interpreter&, value const& self, arguments const& given)
{
    bound_arguments const a("copy", given, {}, 0);
    return self; // values never change
}

constexpr entry mapping_methods[] = {
    {"copy", copy},
    {"fromkeys", not_supported},
    {"get", get},
    {"items", view<sequence_kind::items>},
    {"keys", view<sequence_kind::keys>},
    {"values", view<sequence_kind::values>},
};

value count_items(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("count", given, {""}, 1);
    auto const& items = self.items().items;
    return static_cast<std::int64_t>(
        std::count_if(items.begin(), items.end(), [&](value const& v) { return equal(in.cost(), v, *a[0]); }));
}

value index_of(interpreter& in, value const& self, arguments const& given)
{
    bound_arguments const a("index", given, {""}, 1);
    auto const& items = self.items().items;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (equal(in.cost(), items[i], *a[0])) return static_cast<std::int64_t>(i);
    }
    throw failure("the item is not in the list");
}

constexpr entry sequence_methods[] = {{"copy", copy}, {"count", count_items}, {"index", index_of}};

value cycle(interpreter&, value const& self, arguments const& given)
{
    if (given.positional.empty()) throw failure("loop.cycle() takes at least one argument");
    return given.positional[self.as_loop()->index % given.positional.size()];
}

value changed(interpreter& in, value const& self, arguments const& given)
{
    auto& loop = *self.as_loop();
    auto now = make_sequence(in.cost(), sequence_kind::tuple, given.positional);
    if (!loop.changed.is_undefined() && equal(in.cost(), now, loop.changed)) return false;
    loop.changed = std::move(now);
    return true;
}

value bound(budget& b, value const& self, entry const& e)
{
    b.allocate(sizeof(function));
    return std::make_shared<function const>(function{std::string(e.first), self, e.second, nullptr, nullptr});
}

template<std::size_t n>
std::optional<value> lookup(budget& b, value const& self, entry const (&table)[n], std::string_view name)
{
    auto const* const found =
        std::lower_bound(table, table + n, name, [](entry const& e, std::string_view v) { return e.first < v; });
    if (found == table + n || found->first != name) return std::nullopt;
    return bound(b, self, *found);
}

std::optional<value> loop_field(budget& b, value const& self, loop_state const& loop, std::string_view name)
{
    auto const& items = loop.items->items;
    auto const index = static_cast<std::int64_t>(loop.index);
    auto const length = static_cast<std::int64_t>(items.size());
    if (name == "index") return index + 1;
    if (name == "index0") return index;
    if (name == "revindex") return length - index;
    if (name == "revindex0") return length - index - 1;
    if (name == "first") return index == 0;
    if (name == "last") return index + 1 == length;
    if (name == "length") return length;
    if (name == "depth") return std::int64_t{1};
    if (name == "depth0") return std::int64_t{0};
    if (name == "previtem") return index > 0 ? items[loop.index - 1] : make_undefined(b, "there is no previous item");
    if (name == "nextitem")
        return index + 1 < length ? items[loop.index + 1] : make_undefined(b, "there is no next item");
    if (name == "cycle") return bound(b, self, {"cycle", cycle});
    if (name == "changed") return bound(b, self, {"changed", changed});
    return std::nullopt;
}

} // namespace

std::optional<value> method(budget& b, value const& subject, std::string_view name)
{
    if (subject.is_string()) return lookup(b, subject, string_methods, name);
    if (subject.is_mapping()) return lookup(b, subject, mapping_methods, name);
    if (subject.is_sequence()) {
        if (!subject.items().indexable() || (name == "copy" && subject.items().kind != sequence_kind::list))
            return std::nullopt;
        return lookup(b, subject, sequence_methods, name);
    }
    if (auto const* space = subject.as_name_space()) {
        b.step(space->items.size() / 8);
        auto const* found = name.starts_with('_') ? nullptr : space->find(name);
        return found ? std::optional<value>(*found) : std::nullopt;
    }
    if (auto const* loop = subject.as_loop()) return loop_field(b, subject, *loop, name);
    return std::nullopt;
}

bool hides(value const& subject, std::string_view name)
{
    if (!subject.is_mapping()) return false;
    return name == "clear" || name == "pop" || name == "popitem" || name == "setdefault" || name == "update" ||
           (name.size() > 4 && name.starts_with("__") && name.ends_with("__"));
}

} // namespace plait::jinja
