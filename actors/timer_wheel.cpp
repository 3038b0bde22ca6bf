#include <plait/actors/timer_wheel.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace plait::detail {

namespace {

/// Times as unsigned numbers in the same order.
constexpr std::uint64_t sign = std::uint64_t{1} << 63;

std::uint64_t key_of(time_point t) noexcept
{
    return static_cast<std::uint64_t>(t.time_since_epoch().count()) ^ sign;
}

time_point time_of(std::uint64_t key) noexcept
{
    return time_point(duration(static_cast<std::int64_t>(key ^ sign)));
}

/// Timers of a slot that are looked through rather than moved.
constexpr unsigned few = 64;

} // namespace

bool timer_wheel::slot_set::empty() const noexcept
{
    std::uint64_t all = 0;
    for (auto word : words_)
        all |= word;
    return all == 0;
}

unsigned timer_wheel::slot_set::first() const noexcept
{
    unsigned i = 0;
    while (words_[i] == 0)
        ++i;
    return i * 64 + static_cast<unsigned>(std::countr_zero(words_[i]));
}

timer_wheel::place timer_wheel::place_of(std::uint64_t key) const noexcept
{
    auto const differing = (key ^ base_) | 1;
    auto const l = static_cast<unsigned>(std::bit_width(differing) - 1) / digit_bits;
    return {l, static_cast<unsigned>(key >> (l * digit_bits)) % slots};
}

timer_wheel::place timer_wheel::first_place() const noexcept
{
    auto const l = static_cast<unsigned>(std::countr_zero(levels_));
    return {l, level_[l].used.first()};
}

void timer_wheel::insert(timer& t, std::uint64_t key) noexcept
{
    auto const [l, digit] = place_of(key);
    auto& where = level_[l];
    auto& s = where.at[digit];
    if (auto* first = s.first) {
        t.next = first;
        t.previous = first->previous;
        t.previous->next = first->previous = &t;
        if (key > s.earliest) return;
    } else {
        s.first = t.next = t.previous = &t;
        where.used.add(digit);
        levels_ |= 1U << l;
    }
    s.earliest = key;
    where.stale.remove(digit);
}

void timer_wheel::arm(timer& t) noexcept
{
    auto const key = key_of(t.due);
    if (key < base_) {
        early_.push(t);
    } else {
        insert(t, key);
    }
}

void timer_wheel::cancel(timer& t) noexcept
{
    auto const key = key_of(t.due);
    if (key < base_) {
        early_.remove(t);
        return;
    }
    auto const p = place_of(key);
    if (t.next == &t) {
        take_all(p);
        return;
    }
    auto& s = level_[p.level].at[p.digit];
    t.previous->next = t.next;
    t.next->previous = t.previous;
    if (s.first == &t) s.first = t.next;
    if (s.earliest == key && p.level > 0) level_[p.level].stale.add(p.digit);
}

timer* timer_wheel::take_all(place p) noexcept
{
    auto& where = level_[p.level];
    where.used.remove(p.digit);
    if (where.used.empty()) levels_ &= ~(1U << p.level);
    return std::exchange(where.at[p.digit].first, nullptr);
}

void timer_wheel::enter(place p) noexcept
{
    auto const shift = p.level * digit_bits;
    auto const digits_above = base_ >> shift >> digit_bits << digit_bits;
    base_ = (digits_above | p.digit) << shift;
    auto* const first = take_all(p);
    for (auto* t = first;;) {
        auto* const next = t->next;
        insert(*t, key_of(t->due));
        if (next == first) break;
        t = next;
    }
}

bool timer_wheel::look_up_earliest(place p) noexcept
{
    auto& where = level_[p.level];
    auto& s = where.at[p.digit];
    auto earliest = key_of(s.first->due);
    unsigned seen = 0;
    for (auto* t = s.first->next; t != s.first; t = t->next) {
        if (++seen == few) return false;
        earliest = std::min(earliest, key_of(t->due));
    }
    s.earliest = earliest;
    where.stale.remove(p.digit);
    return true;
}

void timer_wheel::advance(time_point now, work_list& due) noexcept
{
    auto fires = [&](timer& t) {
        t.armed = false;
        due.push_back(t);
    };
    while (auto* top = early_.top()) {
        if (top->due > now) return;
        early_.remove(*top);
        fires(*top);
    }
    auto const end = key_of(now);
    if (end < base_) return;
    while (levels_ != 0) {
        auto const p = first_place();
        auto const shift = p.level * digit_bits;
        auto const& s = level_[p.level].at[p.digit];
        // The slot's begin, in the digits that the wheel's time shares with it.
        if ((end ^ base_) >> shift >> digit_bits == 0 && (end >> shift) % slots < p.digit) break;
        bool const alone = s.first->next == s.first;
        if (p.level == 0 || (alone && s.first->due <= now)) {
            auto* const first = take_all(p);
            for (auto* t = first;;) {
                auto* const next = t->next;
                fires(*t);
                if (next == first) break;
                t = next;
            }
        } else {
            enter(p);
        }
    }
    base_ = end;
}

std::optional<time_point> timer_wheel::no_earlier_than() const noexcept
{
    if (auto* t = early_.top()) return t->due;
    if (levels_ == 0) return std::nullopt;
    auto const p = first_place();
    return time_of(level_[p.level].at[p.digit].earliest);
}

std::optional<time_point> timer_wheel::next() noexcept
{
    if (auto* t = early_.top()) return t->due;
    while (levels_ != 0) {
        auto const p = first_place();
        if (!level_[p.level].stale.has(p.digit) || look_up_earliest(p))
            return time_of(level_[p.level].at[p.digit].earliest);
        enter(p);
    }
    return std::nullopt;
}

} // namespace plait::detail
