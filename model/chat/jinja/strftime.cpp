#include <array>
#include <plait/model/chat/jinja/strftime.hpp>

namespace plait::jinja {

namespace {

constexpr std::array<std::string_view, 7> days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months = {"January",   "February", "March",    "April",
                                                     "May",       "June",     "July",     "August",
                                                     "September", "October",  "November", "December"};

struct calendar_time {
    int year;
    int month; // 1 to 12
    int day;
    int hour;
    int minute;
    int second;
    int weekday;     // Sunday is 0
    int day_of_year; // from 1
};

calendar_time calendar(std::chrono::sys_seconds time)
{
    using namespace std::chrono;
    auto const day = floor<std::chrono::days>(time);
    year_month_day const date(day);
    hh_mm_ss const clock(time - day);
    return {static_cast<int>(date.year()),
            static_cast<int>(static_cast<unsigned>(date.month())),
            static_cast<int>(static_cast<unsigned>(date.day())),
            static_cast<int>(clock.hours().count()),
            static_cast<int>(clock.minutes().count()),
            static_cast<int>(clock.seconds().count()),
            static_cast<int>(weekday(day).c_encoding()),
            static_cast<int>((day - sys_days(date.year() / January / 1)).count()) + 1};
}

/// `n` with at least `width` places; `pad` '-' leaves the filling out.
std::string number(int n, std::size_t width, char pad = '0')
{
    auto digits = std::to_string(n);
    if (pad != '-' && digits.size() < width) digits.insert(0, width - digits.size(), pad);
    return digits;
}

/// The ISO 8601 week and the year it belongs to.
std::pair<int, int> iso_week(calendar_time const& t)
{
    auto const weeks_in = [](int year) {
        auto const last_weekday = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
        return last_weekday(year) == 4 || last_weekday(year - 1) == 3 ? 53 : 52;
    };
    int const from_monday = (t.weekday + 6) % 7;
    int const week = (t.day_of_year - from_monday + 9) / 7;
    if (week < 1) return {weeks_in(t.year - 1), t.year - 1};
    if (week > weeks_in(t.year)) return {1, t.year + 1};
    return {week, t.year};
}

std::string directive(char c, char pad, calendar_time const& t);

std::string all(std::string_view directives, calendar_time const& t)
{
    std::string out;
    for (std::size_t i = 0; i < directives.size(); ++i) {
        if (directives[i] != '%')
            out += directives[i];
        else
            out += directive(directives[++i], '0', t);
    }
    return out;
}

std::string directive(char c, char pad, calendar_time const& t)
{
    auto const blank = [&](char usual) { return pad == '0' ? usual : pad; };
    int const hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
    switch (c) {
    case 'a':
        return std::string(days[static_cast<std::size_t>(t.weekday)].substr(0, 3));
    case 'A':
        return std::string(days[static_cast<std::size_t>(t.weekday)]);
    case 'b':
    case 'h':
        return std::string(months[static_cast<std::size_t>(t.month - 1)].substr(0, 3));
    case 'B':
        return std::string(months[static_cast<std::size_t>(t.month - 1)]);
    case 'c':
        return all("%a %b %e %H:%M:%S %Y", t);
    case 'C':
        return number(t.year / 100, 2, pad);
    case 'd':
        return number(t.day, 2, pad);
    case 'D':
    case 'x':
        return all("%m/%d/%y", t);
    case 'e':
        return number(t.day, 2, blank(' '));
    case 'f':
        return "000000";
    case 'F':
        return all("%Y-%m-%d", t);
    case 'g':
        return number(iso_week(t).second % 100, 2, pad);
    case 'G':
        return number(iso_week(t).second, 1, pad);
    case 'H':
        return number(t.hour, 2, pad);
    case 'I':
        return number(hour12, 2, pad);
    case 'j':
        return number(t.day_of_year, 3, pad);
    case 'k':
        return number(t.hour, 2, blank(' '));
    case 'l':
        return number(hour12, 2, blank(' '));
    case 'm':
        return number(t.month, 2, pad);
    case 'M':
        return number(t.minute, 2, pad);
    case 'n':
        return "\n";
    case 'p':
        return t.hour < 12 ? "AM" : "PM";
    case 'P':
        return t.hour < 12 ? "am" : "pm";
    case 'r':
        return all("%I:%M:%S %p", t);
    case 'R':
        return all("%H:%M", t);
    case 'S':
        return number(t.second, 2, pad);
    case 't':
        return "\t";
    case 'T':
    case 'X':
        return all("%H:%M:%S", t);
    case 'u':
        return number(t.weekday == 0 ? 7 : t.weekday, 1, pad);
    case 'U':
        return number((t.day_of_year - 1 + 7 - t.weekday) / 7, 2, pad);
    case 'V':
        return number(iso_week(t).first, 2, pad);
    case 'w':
        return number(t.weekday, 1, pad);
    case 'W':
        return number((t.day_of_year - 1 + 7 - (t.weekday + 6) % 7) / 7, 2, pad);
    case 'y':
        return number(t.year % 100, 2, pad);
    case 'Y':
        return number(t.year, 1, pad);
    case 'z':
    case 'Z':
        return {}; // no zone
    case '%':
        return "%";
    default:
        return std::string("%") + c;
    }
}

} // namespace

std::string format_time(std::chrono::sys_seconds time, std::string_view format)
{
    auto const t = calendar(time);
    std::string out;
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%' || i + 1 == format.size()) {
            out += format[i];
            continue;
        }
        char pad = '0';
        ++i;
        if ((format[i] == '-' || format[i] == '_') && i + 1 < format.size()) pad = format[i++] == '-' ? '-' : ' ';
        out += directive(format[i], pad, t);
    }
    return out;
}

} // namespace plait::jinja
