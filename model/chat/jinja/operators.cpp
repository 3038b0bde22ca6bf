#include <algorithm>
#include <cmath>
#include <limits>
#include <plait/model/chat/jinja/formatting.hpp>
#include <plait/model/chat/jinja/function.hpp>
#include <plait/model/chat/jinja/methods.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>

namespace plait::jinja {

namespace {

using op = operator_kind;

std::string_view symbol(op o)
{
    switch (o) {
    case op::add:
        return "+";
    case op::subtract:
        return "-";
    case op::multiply:
        return "*";
    case op::divide:
        return "/";
    case op::floor_divide:
        return "//";
    case op::modulo:
        return "%";
    case op::power:
        return "**";
    case op::equal:
        return "==";
    case op::not_equal:
        return "!=";
    case op::less:
        return "<";
    case op::less_equal:
        return "<=";
    case op::greater:
        return ">";
    case op::greater_equal:
        return ">=";
    case op::in:
        return "in";
    case op::not_in:
        return "not in";
    }
    return "?";
}

[[noreturn]] void fail_types(op o, value const& left, value const& right)
{
    throw failure("'" + std::string(symbol(o)) + "' does not take " + std::string(type_name(left)) + " and " +
                  std::string(type_name(right)));
}

[[noreturn]] void fail_overflow()
{
    throw failure("an integer leaves the range of 64 bits");
}

void refuse_undefined(value const& left, value const& right)
{
    if (left.is_undefined()) fail_undefined(left);
    if (right.is_undefined()) fail_undefined(right);
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b)
{
    if (b == -1) {
        if (a == std::numeric_limits<std::int64_t>::min()) fail_overflow();
        return -a;
    }
    auto const q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent)
{
    std::int64_t result = 1;
    for (;;) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) fail_overflow();
        exponent >>= 1;
        if (!exponent) return result;
        if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
    }
}

value integer_arithmetic(op o, std::int64_t a, std::int64_t b)
{
    std::int64_t result = 0;
    switch (o) {
    case op::add:
        if (__builtin_add_overflow(a, b, &result)) fail_overflow();
        return result;
    case op::subtract:
        if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
        return result;
    case op::multiply:
        if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
        return result;
    case op::divide:
        if (b == 0) throw failure("division by zero");
        return static_cast<double>(a) / static_cast<double>(b);
    case op::floor_divide:
        if (b == 0) throw failure("division by zero");
        return floor_quotient(a, b);
    case op::modulo: {
        if (b == 0) throw failure("division by zero");
        if (b == -1) return std::int64_t{0};
        auto const r = a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    default:
        if (b < 0) {
            if (a == 0) throw failure("0 cannot be raised to a negative power");
            return std::pow(static_cast<double>(a), static_cast<double>(b));
        }
        return integer_power(a, b);
    }
}

value real_arithmetic(op o, double a, double b)
{
    switch (o) {
    case op::add:
        return a + b;
    case op::subtract:
        return a - b;
    case op::multiply:
        return a * b;
    case op::divide:
        if (b == 0) throw failure("division by zero");
        return a / b;
    case op::floor_divide:
    case op::modulo: {
        if (b == 0) throw failure("division by zero");
        // As CPython's float_divmod: the remainder takes the divisor's sign, the quotient is rounded from what is left.
        auto r = std::fmod(a, b);
        auto q = (a - r) / b;
        if (r != 0) {
            if ((b < 0) != (r < 0)) {
                r += b;
                q -= 1;
            }
        } else {
            r = std::copysign(0.0, b);
        }
        if (o == op::modulo) return r;
        if (q == 0) return std::copysign(0.0, a / b);
        auto floored = std::floor(q);
        if (q - floored > 0.5) floored += 1;
        return floored;
    }
    default:
        if (a == 0 && b < 0) throw failure("0 cannot be raised to a negative power");
        if (a < 0 && b != std::floor(b)) throw failure("complex numbers are not supported");
        return std::pow(a, b);
    }
}

value repeated(budget& b, value const& subject, std::int64_t times)
{
    auto const n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
    if (subject.is_string()) {
        auto const& part = subject.string().bytes;
        if (!part.empty() && n > b.limits().output_bytes / part.size())
            b.output(std::numeric_limits<std::size_t>::max());
        std::string out;
        if (part.size() == 1) {
            out.assign(n, part[0]);
        } else if (!part.empty()) {
            out.reserve(n * part.size());
            for (std::size_t i = 0; i < n; ++i)
                out += part;
        }
        return make_text(b, std::move(out));
    }
    auto const& part = subject.items().items;
    std::vector<value> out;
    if (!part.empty()) {
        if (n > b.limits().memory_bytes / sizeof(value) / part.size())
            b.allocate(std::numeric_limits<std::size_t>::max());
        b.step(n * part.size());
        out.reserve(n * part.size());
        for (std::size_t i = 0; i < n; ++i)
            out.insert(out.end(), part.begin(), part.end());
    }
    return make_sequence(b, subject.items().kind, std::move(out));
}

bool list_or_tuple(value const& v)
{
    return v.is_sequence() && v.items().kind <= sequence_kind::tuple;
}

bool ordered(op o, int sign)
{
    switch (o) {
    case op::less:
        return sign < 0;
    case op::less_equal:
        return sign <= 0;
    case op::greater:
        return sign > 0;
    default:
        return sign >= 0;
    }
}

bool order(budget& b, op o, value const& left, value const& right)
{
    b.step();
    refuse_undefined(left, right);
    if (left.is_integer() && right.is_integer()) {
        auto const x = left.integer();
        auto const y = right.integer();
        return ordered(o, x < y ? -1 : x > y ? 1 : 0);
    }
    if (left.is_number() && right.is_number()) {
        auto const x = left.real();
        auto const y = right.real();
        if (std::isnan(x) || std::isnan(y)) return false;
        return ordered(o, x < y ? -1 : x > y ? 1 : 0);
    }
    if (left.is_string() && right.is_string()) {
        // UTF-8 sorts as its code points do.
        b.scan(std::min(left.string().bytes.size(), right.string().bytes.size()));
        return ordered(o, left.string().bytes.compare(right.string().bytes));
    }
    if (list_or_tuple(left) && list_or_tuple(right) && left.items().kind == right.items().kind) {
        auto const& x = left.items().items;
        auto const& y = right.items().items;
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
            if (!equal(b, x[i], y[i])) return order(b, o, x[i], y[i]);
        }
        return ordered(o, x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0);
    }
    fail_types(o, left, right);
}

/// A sequence index with Python's meaning of negative ones, or nothing when it is outside.
std::optional<std::size_t> position(std::int64_t index, std::size_t size)
{
    auto const n = static_cast<std::int64_t>(size);
    if (index < 0) index += n;
    if (index < 0 || index >= n) return std::nullopt;
    return static_cast<std::size_t>(index);
}

value character(budget& b, text const& s, std::size_t index)
{
    std::string_view const bytes = s.bytes;
    if (s.ascii()) return make_part(b, s, bytes.substr(index, 1));
    b.search(s.bytes.size());
    auto const start = offset_of(s.bytes, index);
    auto end = start;
    next_point(s.bytes, end);
    return make_part(b, s, bytes.substr(start, end - start));
}

/// The item under a key, or nothing where Python raises LookupError or TypeError.
std::optional<value> item(budget& b, value const& subject, value const& key)
{
    if (subject.is_mapping()) {
        if (!hashable(b, key)) return std::nullopt;
        auto const* found = subject.members().find(b, key);
        return found ? std::optional<value>(*found) : std::nullopt;
    }
    if (!key.is_integer()) return std::nullopt;
    if (subject.is_string()) {
        auto const at = position(key.integer(), subject.string().length);
        return at ? std::optional<value>(character(b, subject.string(), *at)) : std::nullopt;
    }
    if (subject.is_sequence() && subject.items().indexable()) {
        auto const at = position(key.integer(), subject.items().items.size());
        return at ? std::optional<value>(subject.items().items[*at]) : std::nullopt;
    }
    return std::nullopt;
}

value missing(budget& b, value const& subject, value const& key)
{
    std::string hint;
    if (subject.is_none())
        hint = "'None'";
    else
        hint = "'" + std::string(type_name(subject)) + " object'";
    hint += key.is_string() ? " has no attribute " : " has no element ";
    if (key.is_number() || (key.is_string() && key.string().bytes.size() < 100))
        append_repr(b, hint, key);
    else
        hint += "of that name";
    return make_undefined(b, std::move(hint));
}

} // namespace

value arithmetic(budget& b, operator_kind o, value const& left, value const& right)
{
    if (o == op::modulo && left.is_string()) return printf_format(b, left.string().bytes, right);
    refuse_undefined(left, right);
    if (left.is_integer() && right.is_integer()) return integer_arithmetic(o, left.integer(), right.integer());
    if (left.is_number() && right.is_number()) return real_arithmetic(o, left.real(), right.real());
    if (o == op::add) {
        if (left.is_string() && right.is_string()) {
            auto const& x = left.string().bytes;
            auto const& y = right.string().bytes;
            b.output(x.size() + y.size());
            text_builder out;
            out.reserve(x.size() + y.size());
            out.append(left.string());
            out.append(right.string());
            return out.finish(b);
        }
        if (list_or_tuple(left) && list_or_tuple(right) && left.items().kind == right.items().kind) {
            auto out = left.items().items;
            out.insert(out.end(), right.items().items.begin(), right.items().items.end());
            return make_sequence(b, left.items().kind, std::move(out));
        }
    }
    if (o == op::multiply) {
        if ((left.is_string() || list_or_tuple(left)) && right.is_integer()) return repeated(b, left, right.integer());
        if ((right.is_string() || list_or_tuple(right)) && left.is_integer()) return repeated(b, right, left.integer());
    }
    fail_types(o, left, right);
}

value negated(value const& v)
{
    if (v.is_undefined()) fail_undefined(v);
    if (v.is_real()) return -v.real();
    if (!v.is_integer()) throw failure("'-' does not take " + std::string(type_name(v)));
    if (v.integer() == std::numeric_limits<std::int64_t>::min()) fail_overflow();
    return -v.integer();
}

value positive(value const& v)
{
    if (v.is_undefined()) fail_undefined(v);
    if (v.is_real()) return v;
    if (!v.is_integer()) throw failure("'+' does not take " + std::string(type_name(v)));
    return v.integer();
}

bool compare(budget& b, operator_kind o, value const& left, value const& right)
{
    switch (o) {
    case op::equal:
        return equal(b, left, right);
    case op::not_equal:
        return !equal(b, left, right);
    case op::in:
        return contains(b, right, left);
    case op::not_in:
        return !contains(b, right, left);
    default:
        return order(b, o, left, right);
    }
}

bool less(budget& b, value const& left, value const& right)
{
    return order(b, op::less, left, right);
}

bool contains(budget& b, value const& container, value const& item)
{
    if (container.is_undefined()) return false;
    if (container.is_string()) {
        if (item.is_undefined() || !item.is_string()) {
            throw failure("'in' on a string takes a string, not " + std::string(type_name(item)));
        }
        b.search(container.string().bytes.size());
        return find(container.string().bytes, item.string().bytes) != std::string_view::npos;
    }
    if (container.is_mapping()) {
        if (!hashable(b, item)) throw failure(std::string(type_name(item)) + " cannot be a key");
        return container.members().find(b, item) != nullptr;
    }
    if (container.is_sequence()) {
        auto const& items = container.items().items;
        return std::any_of(items.begin(), items.end(), [&](value const& v) { return equal(b, v, item); });
    }
    throw failure("'in' does not take " + std::string(type_name(container)));
}

value subscript(budget& b, value const& subject, value const& key)
{
    if (subject.is_undefined()) fail_undefined(subject);
    if (auto found = item(b, subject, key)) return *std::move(found);
    if (key.is_string()) {
        if (auto found = method(b, subject, key.string().bytes)) return *std::move(found);
    }
    return missing(b, subject, key);
}

value attribute(budget& b, value const& subject, std::string const& name)
{
    if (subject.is_undefined()) fail_undefined(subject);
    if (auto found = method(b, subject, name)) return *std::move(found);
    if (subject.is_mapping() && !hides(subject, name)) {
        if (auto const* found = subject.members().find(name)) return *found;
    }
    return missing(b, subject, make_text(b, name));
}

value slice(budget& b, value const& subject, value const* start, value const* stop, value const* step)
{
    if (subject.is_undefined()) fail_undefined(subject);
    bool const string = subject.is_string();
    if (!string && !(subject.is_sequence() && subject.items().indexable()))
        throw failure(std::string(type_name(subject)) + " cannot be sliced");
    auto const part = [](value const* v, std::int64_t otherwise) {
        if (!v || v->is_none()) return otherwise;
        if (!v->is_integer()) throw failure("the parts of a slice are integers");
        return v->integer();
    };
    // Python's slice.indices: out-of-range parts are clamped, never an error.
    auto const stride = part(step, 1);
    auto const size = string ? subject.string().length : subject.items().items.size();
    auto const n = static_cast<std::int64_t>(size);
    auto const clamp = [&](std::int64_t i) {
        if (i < 0) i = i < -n ? -1 : i + n; // anything before the front is before the front
        if (stride > 0) return std::clamp<std::int64_t>(i, 0, n);
        return std::clamp<std::int64_t>(i, -1, n - 1);
    };
    bool const forwards = stride > 0;
    auto const first = start && !start->is_none() ? clamp(part(start, 0)) : forwards ? 0 : n - 1;
    auto const last = stop && !stop->is_none() ? clamp(part(stop, 0)) : forwards ? n : -1;
    if (stride == 0) throw failure("the step of a slice is zero");

    std::int64_t count = 0;
    if (stride > 0 && first < last) count = (last - first - 1) / stride + 1;
    if (stride < 0 && first > last)
        count = (first - last - 1) / (stride == std::numeric_limits<std::int64_t>::min()
                                          ? std::numeric_limits<std::int64_t>::max()
                                          : -stride) +
                1;
    auto const at = [&](std::int64_t k) { return static_cast<std::size_t>(first + k * stride); };

    if (!string) {
        b.step(static_cast<std::uint64_t>(count) / 4);
        std::vector<value> out;
        out.reserve(static_cast<std::size_t>(count));
        for (std::int64_t k = 0; k < count; ++k)
            out.push_back(subject.items().items[at(k)]);
        return make_sequence(b, subject.items().kind, std::move(out));
    }
    auto const& s = subject.string();
    if (!s.ascii() || stride != 1) b.search(s.bytes.size());
    if (count == 0) return make_text(b, {});
    if (stride == 1) {
        auto const from = s.ascii() ? at(0) : offset_of(s.bytes, at(0));
        auto const rest = std::string_view(s.bytes).substr(from);
        auto const bytes =
            s.ascii() ? static_cast<std::size_t>(count) : offset_of(rest, static_cast<std::size_t>(count));
        return make_part(b, s, rest.substr(0, bytes));
    }
    b.allocate(s.length * sizeof(std::size_t));
    std::vector<std::size_t> offsets;
    offsets.reserve(s.length + 1);
    for (std::size_t i = 0; i < s.bytes.size(); next_point(s.bytes, i))
        offsets.push_back(i);
    offsets.push_back(s.bytes.size());
    text_builder out;
    for (std::int64_t k = 0; k < count; ++k)
        out.append(s, std::string_view(s.bytes).substr(offsets[at(k)], offsets[at(k) + 1] - offsets[at(k)]));
    return out.finish(b);
}

std::shared_ptr<sequence const> iterate(budget& b, value const& v)
{
    if (auto const* s = std::get_if<std::shared_ptr<sequence const>>(&v.data())) return *s;
    std::vector<value> items;
    if (v.is_string()) {
        auto const& s = v.string();
        b.step(s.length);
        items.reserve(std::min<std::size_t>(s.length, b.limits().memory_bytes / 64));
        for (std::size_t at = 0; at < s.bytes.size();) {
            auto const start = at;
            next_point(s.bytes, at);
            items.push_back(make_part(b, s, std::string_view(s.bytes).substr(start, at - start)));
        }
    } else if (v.is_mapping()) {
        for (auto const& member : v.members().items)
            items.push_back(member.first);
    } else if (auto const* loop = v.as_loop()) {
        // The rest of the loop, as (item, loop) pairs in Python; nothing published does it.
        (void)loop;
        throw failure("a loop cannot be iterated over");
    } else if (!v.is_undefined()) {
        throw failure(std::string(type_name(v)) + " cannot be iterated over");
    }
    return std::get<std::shared_ptr<sequence const>>(make_sequence(b, sequence_kind::list, std::move(items)).data());
}

std::int64_t length(value const& v)
{
    if (v.is_undefined()) return 0;
    if (v.is_string()) return static_cast<std::int64_t>(v.string().length);
    if (v.is_mapping()) return static_cast<std::int64_t>(v.members().items.size());
    if (v.is_sequence() && v.items().kind != sequence_kind::iterator)
        return static_cast<std::int64_t>(v.items().items.size());
    if (auto const* loop = v.as_loop()) return static_cast<std::int64_t>(loop->items->items.size());
    throw failure(std::string(type_name(v)) + " has no length");
}

bool hashable(budget& b, value const& v)
{
    b.step();
    if (v.is_mapping()) return false;
    if (!v.is_sequence()) return true;
    if (v.items().kind == sequence_kind::list) return false;
    return std::all_of(v.items().items.begin(), v.items().items.end(), [&](value const& i) { return hashable(b, i); });
}

} // namespace plait::jinja
