#include <algorithm>
#include <plait/model/chat/jinja/filters.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/merge_sort.hpp>
#include <plait/model/chat/jinja/numbers.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/strings.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait::jinja {

filter_function find_sequence_filter(std::string_view name);

namespace {

using entry = std::pair<std::string_view, filter_function>;

value list_of(interpreter& in, std::vector<value> items)
{
    return make_sequence(in.cost(), sequence_kind::list, std::move(items));
}
value iterator_of(interpreter& in, std::vector<value> items)
{
    return make_sequence(in.cost(), sequence_kind::iterator, std::move(items));
}

/// A path such as "function.name" or "0.id", or a plain index, as the filters take it.
class path {
public:
    path(interpreter& in, value const* attribute)
    {
        if (!attribute || attribute->is_none()) return;
        if (!attribute->is_string()) {
            parts_.push_back(*attribute);
            return;
        }
        for (auto const part : split(attribute->string().bytes, ".", -1, false)) {
            auto const index =
                !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })
                    ? parse_integer(part, 10)
                    : std::nullopt;
            parts_.push_back(index ? value(*index) : make_text(in.cost(), std::string(part)));
        }
    }

    value operator()(interpreter& in, value item, value const* otherwise = nullptr) const
    {
        for (auto const& part : parts_) {
            item = subscript(in.cost(), item, part);
            if (otherwise && !otherwise->is_none() && item.is_undefined()) item = *otherwise;
        }
        return item;
    }

private:
    std::vector<value> parts_;
};

value folded(interpreter& in, value v, bool case_sensitive)
{
    if (case_sensitive || !v.is_string()) return v;
    in.cost().classify(v.string().bytes.size());
    return make_text(in.cost(), to_lower(v.string().bytes));
}

struct keyed {
    value key;
    value item;
};

/// Stable, like Python's; a comparison that raises leaves through here.
void sort_by_key(interpreter& in, std::vector<keyed>& items, bool reverse)
{
    // With `reverse` Python keeps equal items in their order too.
    merge_sort(items, [&](keyed const& x, keyed const& y) {
        return reverse ? less(in.cost(), y.key, x.key) : less(in.cost(), x.key, y.key);
    });
}

std::vector<value> without_keys(std::vector<keyed> items)
{
    std::vector<value> out;
    out.reserve(items.size());
    for (auto& k : items)
        out.push_back(std::move(k.item));
    return out;
}

value batch(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("batch", given, {"linecount", "fill_with"}, 1);
    auto const width = a.integer(0, 0);
    if (width <= 0) throw failure("batch takes a positive number");
    std::vector<value> rows;
    std::vector<value> row;
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items) {
        if (static_cast<std::int64_t>(row.size()) == width) rows.push_back(list_of(in, std::exchange(row, {})));
        row.push_back(item);
    }
    if (!row.empty()) {
        if (a.given(1)) {
            in.cost().step(static_cast<std::uint64_t>(width));
            row.resize(static_cast<std::size_t>(width), *a[1]);
        }
        rows.push_back(list_of(in, std::move(row)));
    }
    return iterator_of(in, std::move(rows));
}

value dict_sort(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("dictsort", given, {"case_sensitive", "by", "reverse"}, 0);
    auto const by = a.string(1, "key");
    if (by != "key" && by != "value") throw failure("dictsort sorts by \"key\" or \"value\"");
    if (subject.is_undefined()) fail_undefined(subject);
    if (!subject.is_mapping()) throw failure("dictsort takes a mapping, not " + std::string(type_name(subject)));
    std::vector<keyed> items;
    auto const pairs = members_view(in.cost(), subject.members(), sequence_kind::items);
    for (auto const& pair : pairs.items().items)
        items.push_back({folded(in, pair.items().items[by == "key" ? 0 : 1], a.boolean(0, false)), pair});
    sort_by_key(in, items, a.boolean(2, false));
    return list_of(in, without_keys(std::move(items)));
}

value first(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("first", given, {}, 0);
    auto const source = iterate(in.cost(), subject);
    return source->items.empty() ? make_undefined(in.cost(), "No first item, sequence was empty.")
                                 : source->items.front();
}

value last(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("last", given, {}, 0);
    if (subject.is_sequence() && subject.items().kind == sequence_kind::iterator)
        throw failure("last does not take an iterator; use the filter 'list' first");
    auto const source = iterate(in.cost(), subject);
    return source->items.empty() ? make_undefined(in.cost(), "No last item, sequence was empty.")
                                 : source->items.back();
}

value group_by(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("groupby", given, {"attribute", "default", "case_sensitive"}, 1);
    path const attribute(in, a[0]);
    bool const exact = a.boolean(2, false);
    std::vector<keyed> items;
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items)
        items.push_back({folded(in, attribute(in, item, a[1]), exact), item});
    sort_by_key(in, items, false);
    std::vector<value> groups;
    for (std::size_t i = 0; i < items.size();) {
        std::vector<value> members;
        auto const start = i;
        for (; i < items.size() && equal(in.cost(), items[i].key, items[start].key); ++i)
            members.push_back(items[i].item);
        auto const name = exact ? items[start].key : attribute(in, items[start].item, a[1]);
        groups.push_back(make_sequence(in.cost(), sequence_kind::tuple, {name, list_of(in, std::move(members))}));
    }
    return list_of(in, std::move(groups));
}

value join(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("join", given, {"d", "attribute"}, 0);
    auto source = iterate(in.cost(), subject);
    auto const between =
        a[0] && a[0]->is_string() ? *a[0] : make_text(in.cost(), a[0] ? to_str(in.cost(), *a[0]) : std::string());
    auto const& separator = between.string();
    if (!a.given(1)) return join_texts(in.cost(), separator, *source, false);
    path const attribute(in, a[1]);
    std::vector<value> items;
    for (auto const& item : source->items)
        items.push_back(attribute(in, item));
    return join_texts(in.cost(), separator, list_of(in, std::move(items)).items(), false);
}

value list(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("list", given, {}, 0);
    return list_of(in, iterate(in.cost(), subject)->items);
}

/// What a filter such as map passes on: everything behind its first `count` positional arguments.
arguments rest_of(arguments const& given, std::size_t count)
{
    arguments rest;
    rest.positional.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(count), given.positional.end());
    rest.named = given.named;
    return rest;
}

std::string_view name_argument(arguments const& given, std::size_t index, char const* what)
{
    if (given.positional.size() <= index || !given.positional[index].is_string())
        throw failure(std::string(what) + " takes a name");
    return given.positional[index].string().bytes;
}

value map(interpreter& in, value const& subject, arguments const& given)
{
    std::vector<value> out;
    if (!truthy(subject)) return iterator_of(in, {});
    auto const source = iterate(in.cost(), subject);
    auto const has_attribute =
        std::any_of(given.named.begin(), given.named.end(), [](auto const& n) { return n.first == "attribute"; });
    if (given.positional.empty() && has_attribute) {
        bound_arguments const a("map", given, {"attribute", "default"}, 0);
        path const attribute(in, a[0]);
        for (auto const& item : source->items)
            out.push_back(attribute(in, item, a[1]));
        return iterator_of(in, std::move(out));
    }
    auto const name = name_argument(given, 0, "map");
    auto const rest = rest_of(given, 1);
    for (auto const& item : source->items)
        out.push_back(in.apply_filter(name, item, rest));
    return iterator_of(in, std::move(out));
}

template<bool keep, bool by_attribute>
value choose(interpreter& in, value const& subject, arguments const& given)
{
    if (!truthy(subject)) return iterator_of(in, {});
    constexpr std::size_t name_at = by_attribute ? 1 : 0;
    if (by_attribute && given.positional.empty())
        throw failure("selectattr and rejectattr take the name of an attribute");
    path const attribute(in, by_attribute ? &given.positional[0] : nullptr);
    bool const tested = given.positional.size() > name_at;
    auto const name = tested ? name_argument(given, name_at, "a selection") : std::string_view();
    auto const rest = tested ? rest_of(given, name_at + 1) : arguments();
    std::vector<value> out;
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items) {
        auto const examined = attribute(in, item);
        bool const holds = tested ? in.apply_test(name, examined, rest) : truthy(examined);
        in.cost().step();
        if (holds == keep) out.push_back(item);
    }
    return iterator_of(in, std::move(out));
}

template<bool largest>
value extreme(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a(largest ? "max" : "min", given, {"case_sensitive", "attribute"}, 0);
    path const attribute(in, a[1]);
    auto const source = iterate(in.cost(), subject);
    if (source->items.empty()) return make_undefined(in.cost(), "No aggregated item, sequence was empty.");
    value const* best = nullptr;
    value best_key;
    for (auto const& item : source->items) {
        auto key = folded(in, attribute(in, item), a.boolean(0, false));
        if (best && !(largest ? less(in.cost(), best_key, key) : less(in.cost(), key, best_key))) continue;
        best = &item;
        best_key = std::move(key);
    }
    return *best;
}

value reverse(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("reverse", given, {}, 0);
    value const back(std::int64_t{-1});
    if (subject.is_string()) return slice(in.cost(), subject, nullptr, nullptr, &back);
    auto items = iterate(in.cost(), subject)->items;
    std::reverse(items.begin(), items.end());
    return iterator_of(in, std::move(items));
}

value slices(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("slice", given, {"slices", "fill_with"}, 1);
    auto const source = iterate(in.cost(), subject);
    auto const count = a.integer(0, 0);
    if (count <= 0) throw failure("slice takes a positive number");
    in.cost().step(static_cast<std::uint64_t>(count));
    auto const length = static_cast<std::int64_t>(source->items.size());
    auto const each = length / count;
    auto const longer = length % count;
    std::vector<value> out;
    std::int64_t start = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        auto const end = start + each + (i < longer ? 1 : 0);
        std::vector<value> part(source->items.begin() + start, source->items.begin() + end);
        if (a.given(1) && i >= longer) part.push_back(*a[1]);
        out.push_back(list_of(in, std::move(part)));
        start = end;
    }
    return iterator_of(in, std::move(out));
}

value sort(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("sort", given, {"reverse", "case_sensitive", "attribute"}, 0);
    std::vector<path> paths;
    if (a[2] && a[2]->is_string()) {
        for (auto const part : split(a[2]->string().bytes, ",", -1, false)) {
            auto const name = make_text(in.cost(), std::string(part));
            paths.emplace_back(in, &name);
        }
    } else {
        paths.emplace_back(in, a[2]);
    }
    std::vector<keyed> items;
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items) {
        std::vector<value> keys;
        keys.reserve(paths.size());
        for (auto const& p : paths)
            keys.push_back(folded(in, p(in, item), a.boolean(1, false)));
        items.push_back({list_of(in, std::move(keys)), item});
    }
    sort_by_key(in, items, a.boolean(0, false));
    return list_of(in, without_keys(std::move(items)));
}

value sum(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("sum", given, {"attribute", "start"}, 0);
    path const attribute(in, a[0]);
    auto total = a[1] ? *a[1] : value(std::int64_t{0});
    if (total.is_string()) throw failure("sum does not take strings");
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items)
        total = arithmetic(in.cost(), operator_kind::add, total, attribute(in, item));
    return total;
}

value unique(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("unique", given, {"case_sensitive", "attribute"}, 0);
    path const attribute(in, a[1]);
    mapping seen;
    std::vector<value> out;
    auto const source = iterate(in.cost(), subject);
    for (auto const& item : source->items) {
        auto key = folded(in, attribute(in, item), a.boolean(0, false));
        if (!hashable(in.cost(), key)) throw failure("unique does not take " + std::string(type_name(key)));
        in.cost().step(key.is_string() ? 1 : seen.items.size());
        if (seen.find(in.cost(), key)) continue;
        seen.put(in.cost(), std::move(key), none{});
        out.push_back(item);
    }
    return iterator_of(in, std::move(out));
}

constexpr entry filters[] = {
    {"batch", batch},
    {"dictsort", dict_sort},
    {"first", first},
    {"groupby", group_by},
    {"join", join},
    {"last", last},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"reverse", reverse},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"slice", slices},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

} // namespace

filter_function find_sequence_filter(std::string_view name)
{
    auto const* const found = std::lower_bound(std::begin(filters), std::end(filters), name,
                                               [](entry const& e, std::string_view v) { return e.first < v; });
    return found != std::end(filters) && found->first == name ? found->second : nullptr;
}

} // namespace plait::jinja
