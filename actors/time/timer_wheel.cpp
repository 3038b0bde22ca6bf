#include <plait/actors/time/timer_wheel.hpp>

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

/// Of a timer that may have gone.
void prefetch(timer const* t) noexcept
{
    auto const* begin = reinterpret_cast<char const*>(t);
    if (!begin) return;
    __builtin_prefetch(begin + sizeof(resumption), 1);
    __builtin_prefetch(begin + sizeof(timer) - 1, 1);
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

void timer_wheel::insert(timer& t, std::uint64_t key, end where) noexcept
{
    auto const [l, digit] = place_of(key);
    auto& in = level_[l];
    auto& s = in.at[digit];
    bool const first_here = !s.first;
    if (first_here) {
        s.first = t.next = t.previous = &t;
        s.filled = where;
        s.earliest = key;
        in.used.add(digit);
        in.stale.remove(digit);
        levels_ |= 1U << l;
    } else {
        auto* const first = s.first;
        t.next = first;
        t.previous = first->previous;
        t.previous->next = first->previous = &t;
        if (where == end::front) s.first = &t;
        if (key <= s.earliest) {
            s.earliest = key;
            in.stale.remove(digit);
        }
    }
    // Whoever walks back the way in which they came finds each in the cache.
    auto& before = s.before[s.inserted++ % s.before.size()];
    t.child = std::exchange(before, &t);
}

void timer_wheel::arm(timer& t) noexcept
{
    auto const key = key_of(t.due);
    if (key < base_) {
        early_.push(t);
    } else {
        insert(t, key, end::back);
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
    // All lower levels are empty: timers that come the other way round are put in the other way round.
    auto const filled = level_[p.level].at[p.digit].filled;
    auto* const first = take_all(p);
    auto* const start = filled == end::back ? first->previous : first;
    for (auto* t = start;;) {
        auto* const next = filled == end::back ? t->previous : t->next;
        prefetch(t->child);
        insert(*t, key_of(t->due), filled == end::back ? end::front : end::back);
        if (next == start) break;
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

void timer_wheel::advance(time_point now, work_list& due, std::size_t most) noexcept
{
    std::array<timer*, 8> fired{}; // the last
    unsigned count = 0;
    auto fires = [&](timer& t) {
        t.armed = false;
        due.push_back(t);
        --most;
        auto*& earlier = fired[count++ % fired.size()];
        if (earlier) earlier->soon = t.frame();
        earlier = &t;
    };
    while (auto* top = early_.top()) {
        if (top->due > now || most == 0) return;
        early_.remove(*top);
        fires(*top);
    }
    auto const end = key_of(now);
    if (end < base_) return;
    while (levels_ != 0) {
        if (most == 0) return;
        auto const p = first_place();
        auto const shift = p.level * digit_bits;
        auto& s = level_[p.level].at[p.digit];
        // The slot's begin, in the digits that the wheel's time shares with it.
        if ((end ^ base_) >> shift >> digit_bits == 0 && (end >> shift) % slots < p.digit) break;
        bool const alone = s.first->next == s.first;
        if (p.level == 0 || (alone && s.first->due <= now)) {
            auto* const first = s.first;
            for (auto* t = first;;) {
                auto* const next = t->next;
                fires(*t);
                if (next == first) {
                    take_all(p);
                    break;
                }
                if (most == 0) {
                    next->previous = first->previous;
                    next->previous->next = next;
                    s.first = next;
                    return;
                }
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
