#include <algorithm>
#include <limits>
#include <plait/model/chat/jinja/globals.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/strftime.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>

namespace plait::jinja {

namespace {

constexpr std::uint64_t longest_range = 100'000; // jinja2's sandbox draws the line here too

value range(interpreter& in, value const&, arguments const& given)
{
    bound_arguments const a("range", given, {"", "", ""}, 1);
    auto const start = a[1] ? a.integer(0, 0) : 0;
    auto const stop = a[1] ? a.integer(1, 0) : a.integer(0, 0);
    auto const step = a.integer(2, 1);
    if (step == 0) throw failure("the step of range() is zero");
    std::uint64_t count = 0;
    auto const distance = [](std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    };
    if (step > 0 && start < stop) count = (distance(start, stop) - 1) / static_cast<std::uint64_t>(step) + 1;
    if (step < 0 && start > stop)
        count = (distance(stop, start) - 1) / (std::uint64_t{0} - static_cast<std::uint64_t>(step)) + 1;
    if (count > longest_range) throw failure("range() of more than 100000 numbers");
    std::vector<value> items;
    items.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i)
        items.emplace_back(start + static_cast<std::int64_t>(i) * step);
    return make_sequence(in.cost(), sequence_kind::range, std::move(items));
}

/// The members that dict() and namespace() start from: a mapping or pairs, then named arguments.
mapping initial_members(interpreter& in, char const* what, arguments const& given)
{
    mapping m;
    if (given.positional.size() > 1) throw failure(std::string(what) + "() takes one positional argument");
    if (!given.positional.empty()) {
        auto const& source = given.positional[0];
        if (source.is_mapping()) {
            m = source.members();
        } else {
            auto const pairs = iterate(in.cost(), source);
            for (auto const& pair : pairs->items) {
                auto const parts = iterate(in.cost(), pair);
                if (parts->items.size() != 2) throw failure(std::string(what) + "() takes pairs");
                if (!hashable(in.cost(), parts->items[0]))
                    throw failure(std::string(type_name(parts->items[0])) + " cannot be a key");
                m.put(in.cost(), parts->items[0], parts->items[1]);
            }
        }
    }
    for (auto const& [name, item] : given.named)
        m.put(in.cost(), foreign_text(in.cost(), name), item);
    return m;
}

value dict(interpreter& in, value const&, arguments const& given)
{
    return make_mapping(in.cost(), initial_members(in, "dict", given));
}

value name_space_of(interpreter& in, value const&, arguments const& given)
{
    name_space n;
    auto const members = initial_members(in, "namespace", given);
    for (auto const& [key, item] : members.items) {
        in.cost().step(n.items.size() / 8);
        if (key.is_string()) n.put(key.string().bytes, item);
    }
    return in.make_name_space(std::move(n));
}

value raise_exception(interpreter& in, value const&, arguments const& given)
{
    bound_arguments const a("raise_exception", given, {"message"}, 1);
    throw failure(to_str(in.cost(), *a[0]));
}

value strftime_now(interpreter& in, value const&, arguments const& given)
{
    bound_arguments const a("strftime_now", given, {"format"}, 1);
    if (!in.now()) throw failure("strftime_now() is called but no date was given");
    auto const format = a.string(0, {});
    in.cost().output(format.size() * 8);
    return make_text(in.cost(), format_time(*in.now(), format));
}

constexpr std::pair<std::string_view, function::builtin> globals[] = {
    {"dict", dict},   {"namespace", name_space_of},   {"raise_exception", raise_exception},
    {"range", range}, {"strftime_now", strftime_now},
};

} // namespace

std::shared_ptr<function const> find_global(std::string_view name)
{
    auto const* const found =
        std::find_if(std::begin(globals), std::end(globals), [&](auto const& g) { return g.first == name; });
    if (found == std::end(globals)) return nullptr;
    return std::make_shared<function const>(function{std::string(name), {}, found->second, nullptr, nullptr});
}

} // namespace plait::jinja
