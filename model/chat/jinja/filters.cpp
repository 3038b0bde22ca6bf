#include <algorithm>
#include <cmath>
#include <limits>
#include <plait/model/chat/jinja/filters.hpp>
#include <plait/model/chat/jinja/formatting.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/numbers.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/strings.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait::jinja {

// Sorting, selecting and grouping: sequence_filters.cpp.
filter_function find_sequence_filter(std::string_view name);

namespace {

using entry = std::pair<std::string_view, filter_function>;

/// The subject as text: itself, or what str() makes of it.
value as_text(interpreter& in, value const& v)
{
    return v.is_string() ? v : make_text(in.cost(), to_str(in.cost(), v));
}

/// A string converter of text.hpp as a filter.
template<std::string (*convert)(std::string_view)>
value converted(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("the filter", given, {}, 0);
    auto const text = as_text(in, subject);
    in.cost().classify(text.string().bytes.size());
    return make_text(in.cost(), convert(text.string().bytes));
}

value absolute(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("abs", given, {}, 0);
    if (subject.is_undefined()) fail_undefined(subject);
    if (subject.is_real()) return std::fabs(subject.real());
    if (!subject.is_integer()) throw failure("abs does not take " + std::string(type_name(subject)));
    return subject.integer() < 0 ? negated(subject) : value(subject.integer());
}

value attr(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("attr", given, {"name"}, 1);
    if (subject.is_mapping()) { // methods only: unlike a dot, this never reaches keys
        auto found = attribute(in.cost(), make_mapping(in.cost(), {}), std::string(a.string(0, {})));
        if (!found.is_function()) return make_undefined(in.cost(), "'dict object' has no such attribute");
    }
    return attribute(in.cost(), subject, std::string(a.string(0, {})));
}

value center(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("center", given, {"width"}, 0);
    return pad_text(in.cost(), as_text(in, subject).string(), a.integer(0, 80), '^', " ");
}

value default_value(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("default", given, {"default_value", "boolean"}, 0);
    if (!subject.is_undefined() && !(a.boolean(1, false) && !truthy(subject))) return subject;
    return a[0] ? *a[0] : make_text(in.cost(), {});
}

value escape(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("escape", given, {}, 0);
    auto const text = as_text(in, subject);
    in.cost().search(text.string().bytes.size());
    std::string out;
    append_escaped(out, text.string().bytes);
    return make_text(in.cost(), std::move(out));
}

value file_size(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("filesizeformat", given, {"binary"}, 0);
    bool const binary = a.boolean(0, false);
    auto const parsed = subject.is_string() ? parse_real(subject.string().bytes) : std::nullopt;
    if (!parsed && !subject.is_number()) throw failure("filesizeformat takes a number");
    auto const bytes = parsed ? *parsed : subject.real();
    double const base = binary ? 1024 : 1000;
    if (bytes == 1) return make_text(in.cost(), "1 Byte");
    if (bytes < base) return make_text(in.cost(), std::to_string(truncated(bytes).value_or(0)) + " Bytes");
    double unit = base;
    std::string text;
    for (char const prefix : {'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'}) {
        unit *= base;
        text = real_digits(base * bytes / unit, 'f', 1) + " ";
        text += binary && prefix == 'k' ? 'K' : prefix;
        text += binary ? "iB" : "B";
        if (bytes < unit) break;
    }
    return make_text(in.cost(), std::move(text));
}

value to_float(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("float", given, {"default"}, 0);
    if (subject.is_undefined()) fail_undefined(subject);
    if (subject.is_number()) return subject.real();
    auto const parsed = subject.is_string() ? parse_real(subject.string().bytes) : std::nullopt;
    return parsed ? value(*parsed) : a[0] ? *a[0] : value(0.0);
}

value to_int(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("int", given, {"default", "base"}, 0);
    if (subject.is_undefined()) fail_undefined(subject);
    auto otherwise = a[0] ? *a[0] : value(std::int64_t{0});
    if (subject.is_integer()) return subject.integer();
    if (subject.is_real()) {
        auto const i = truncated(subject.real());
        return i ? value(*i) : otherwise;
    }
    if (!subject.is_string()) return otherwise;
    auto const& text = subject.string().bytes;
    if (auto const i = parse_integer(text, static_cast<int>(std::clamp<std::int64_t>(a.integer(1, 10), -1, 99))))
        return *i;
    // As in "42.23"; what does not fit is as if it were no number.
    auto const d = parse_real(text);
    if (!d || !std::isfinite(*d)) return otherwise;
    return *truncated(*d);
}

value format(interpreter& in, value const& subject, arguments const& given)
{
    auto const text = as_text(in, subject);
    if (given.named.empty()) {
        auto const all = make_sequence(in.cost(), sequence_kind::tuple, given.positional);
        return printf_format(in.cost(), text.string().bytes, all);
    }
    if (!given.positional.empty()) throw failure("format takes positional or named arguments, not both");
    mapping m;
    for (auto const& [name, item] : given.named)
        m.put(in.cost(), make_text(in.cost(), name), item);
    return printf_format(in.cost(), text.string().bytes, make_mapping(in.cost(), std::move(m)));
}

value indent(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("indent", given, {"width", "first", "blank"}, 0);
    if (subject.is_undefined()) fail_undefined(subject);
    if (!subject.is_string()) throw failure("indent takes a string, not " + std::string(type_name(subject)));
    std::string indentation;
    if (a[0] && a[0]->is_string()) {
        indentation = a[0]->string().bytes;
    } else {
        auto const width = std::max<std::int64_t>(a.integer(0, 4), 0);
        in.cost().output(static_cast<std::size_t>(width));
        indentation.assign(static_cast<std::size_t>(width), ' ');
    }
    in.cost().search(subject.string().bytes.size());
    auto const text = subject.string().bytes + "\n"; // so that a line end at the very end counts as one more line
    auto const lines = split_lines(text, false);
    std::string out = a.boolean(1, false) ? indentation : std::string();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i) out += '\n';
        if (i && (a.boolean(2, false) || !lines[i].empty())) out += indentation;
        out += lines[i];
        in.cost().output(out.size());
    }
    return make_text(in.cost(), std::move(out));
}

value items(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("items", given, {}, 0);
    if (subject.is_undefined()) return make_sequence(in.cost(), sequence_kind::iterator, {});
    if (!subject.is_mapping()) throw failure("items takes a mapping, not " + std::string(type_name(subject)));
    return make_sequence(in.cost(), sequence_kind::iterator,
                         members_view(in.cost(), subject.members(), sequence_kind::items).items().items);
}

value count(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("length", given, {}, 0);
    return length(subject);
}

value replace(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("replace", given, {"old", "new", "count"}, 2);
    auto const text = as_text(in, subject);
    auto const old = as_text(in, *a[0]);
    auto const replacement = as_text(in, *a[1]);
    return replace_text(in.cost(), text.string(), old.string().bytes, replacement.string(),
                        a.given(2) ? a.integer(2, -1) : -1);
}

value round(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("round", given, {"precision", "method"}, 0);
    auto const places = a.integer(0, 0);
    auto const method = a.string(1, "common");
    if (method != "common" && method != "ceil" && method != "floor")
        throw failure("round's method is common, ceil or floor");
    if (subject.is_undefined()) fail_undefined(subject);
    if (!subject.is_number()) throw failure("round does not take " + std::string(type_name(subject)));
    if (method == "common") return rounded(subject, places);
    auto const unit = std::pow(10.0, static_cast<double>(places));
    auto const scaled = subject.real() * unit;
    if (!std::isfinite(scaled)) throw failure("round does not take what is not finite");
    return ((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0) / unit; // Python's -0 passes an integer
}

value text(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("string", given, {}, 0);
    return as_text(in, subject);
}

std::string title_words(std::string_view text)
{
    // Words begin behind white space, "-", "(", "{", "[" and "<", not behind every letterless character.
    std::string out;
    std::size_t at = 0;
    auto const separator = [](char32_t c) {
        return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    while (at < text.size()) {
        auto const start = at;
        auto end = at;
        auto const c = next_point(text, at);
        if (separator(c)) {
            append_point(out, c);
            continue;
        }
        auto const first_end = at;
        for (end = at; at < text.size(); end = at) {
            if (separator(next_point(text, at))) break;
        }
        out += to_upper(text.substr(start, first_end - start));
        out += to_lower(text.substr(first_end, end - first_end));
        at = end;
    }
    return out;
}

value to_json(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
    json_style style;
    style.ascii_only = a.boolean(0, false);
    style.sort_keys = a.boolean(3, false);
    if (a.given(1)) {
        style.pretty = true;
        style.item_separator = ",";
        if (a[1]->is_string()) {
            style.indentation = a[1]->string().bytes;
        } else {
            auto const width = std::max<std::int64_t>(a.integer(1, 0), 0);
            in.cost().output(static_cast<std::size_t>(width));
            style.indentation.assign(static_cast<std::size_t>(width), ' ');
        }
    }
    if (a.given(2)) {
        auto const& pair = *a[2];
        if (!pair.is_sequence() || pair.items().items.size() != 2 || !pair.items().items[0].is_string() ||
            !pair.items().items[1].is_string())
            throw failure("tojson's separators are a pair of strings");
        style.item_separator = pair.items().items[0].string().bytes;
        style.key_separator = pair.items().items[1].string().bytes;
    }
    return make_text(in.cost(), dump_json(in.cost(), subject, style));
}

value trim(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("trim", given, {"chars"}, 0);
    auto const text = as_text(in, subject);
    if (!a.given(0)) return strip_text(in.cost(), text, nullptr, true, true);
    auto const chars = a.string(0, {});
    return strip_text(in.cost(), text, &chars, true, true);
}

value truncate(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("truncate", given, {"length", "killwords", "end", "leeway"}, 0);
    auto const end = a.string(2, "...");
    auto const end_length = static_cast<std::int64_t>(code_points(end));
    auto const limit = a.integer(0, 255);
    auto const leeway = a.given(3) ? a.integer(3, 5) : 5;
    if (limit < end_length || leeway < 0) throw failure("truncate's length is shorter than its end");
    auto const size = length(subject);
    if (size <= limit || size - limit <= leeway) return subject;
    if (!subject.is_string()) throw failure("truncate takes a string, not " + std::string(type_name(subject)));
    auto const& bytes = subject.string().bytes;
    in.cost().search(bytes.size());
    auto kept = std::string_view(bytes).substr(0, offset_of(bytes, static_cast<std::size_t>(limit - end_length)));
    if (!a.boolean(1, false)) kept = kept.substr(0, kept.rfind(' '));
    return make_text(in.cost(), std::string(kept).append(end));
}

void append_url(std::string& out, std::string_view text, bool query)
{
    for (char const c : text) {
        bool const plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                           std::string_view(query ? "_.-~" : "_.-~/").find(c) != std::string_view::npos;
        if (plain && static_cast<unsigned char>(c) < 0x80) {
            out += c;
        } else if (query && c == ' ') {
            out += '+';
        } else {
            out += '%';
            out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
            out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
        }
    }
}

value url_encode(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("urlencode", given, {}, 0);
    std::string out;
    if (!subject.is_mapping() && !subject.is_sequence()) {
        auto const text = as_text(in, subject);
        in.cost().search(text.string().bytes.size());
        append_url(out, text.string().bytes, false);
        return make_text(in.cost(), std::move(out));
    }
    auto const pairs =
        subject.is_mapping() ? members_view(in.cost(), subject.members(), sequence_kind::items) : subject;
    for (auto const& pair : pairs.items().items) {
        if (!pair.is_sequence() || pair.items().items.size() != 2) throw failure("urlencode takes pairs");
        if (!out.empty()) out += '&';
        append_url(out, as_text(in, pair.items().items[0]).string().bytes, true);
        out += '=';
        append_url(out, as_text(in, pair.items().items[1]).string().bytes, true);
        in.cost().output(out.size());
    }
    return make_text(in.cost(), std::move(out));
}

value word_count(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("wordcount", given, {}, 0);
    auto const text = as_text(in, subject);
    auto const& bytes = text.string().bytes;
    in.cost().classify(bytes.size());
    std::int64_t words = 0;
    bool inside = false;
    for (std::size_t at = 0; at < bytes.size();) {
        auto const c = next_point(bytes, at);
        bool const word = is_alpha(c) || is_numeric(c) || c == '_';
        words += word && !inside;
        inside = word;
    }
    return words;
}

constexpr entry filters[] = {
    {"abs", absolute},
    {"attr", attr},
    {"capitalize", converted<capitalize>},
    {"center", center},
    {"count", count},
    {"d", default_value},
    {"default", default_value},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", file_size},
    {"float", to_float},
    {"forceescape", escape},
    {"format", format},
    {"indent", indent},
    {"int", to_int},
    {"items", items},
    {"length", count},
    {"lower", converted<to_lower>},
    {"replace", replace},
    {"round", round},
    {"safe", text},
    {"string", text},
    {"title", converted<title_words>},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", converted<to_upper>},
    {"urlencode", url_encode},
    {"wordcount", word_count},
};

} // namespace

filter_function find_filter(std::string_view name)
{
    auto const* const found = std::lower_bound(std::begin(filters), std::end(filters), name,
                                               [](entry const& e, std::string_view v) { return e.first < v; });
    return found != std::end(filters) && found->first == name ? found->second : find_sequence_filter(name);
}

} // namespace plait::jinja
