#include <plait/streams/trace_file.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include <plait/actors/error.hpp>

namespace plait {

trace_file::trace_file(std::filesystem::path where)
    : where_(std::move(where))
{
    if (where_.empty()) return;
    out_.open(where_, std::ios::binary | std::ios::trunc);
    if (!out_) throw error(errc::io, where_.string() + ": can't be written");
    record_ = std::make_shared<trace>();
}

void trace_file::write()
{
    if (!record_) return;
    record_->write(out_);
    out_.close();
    if (!out_) throw error(errc::io, where_.string() + ": not all of the trace could be written");
}

std::string take_trace_option(int& count, char** arguments)
{
    for (int i = 1; i + 1 < count; ++i) {
        if (std::string_view(arguments[i]) != "--trace") continue;
        std::string out = arguments[i + 1];
        std::copy(arguments + i + 2, arguments + count, arguments + i);
        count -= 2;
        return out;
    }
    return {};
}

} // namespace plait
