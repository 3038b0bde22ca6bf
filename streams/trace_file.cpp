#include <plait/streams/trace_file.hpp>

#include <utility>

#include <plait/actors/error.hpp>

namespace plait {

trace_file::trace_file(std::filesystem::path where)
    : where_(std::move(where))
    , out_(where_, std::ios::binary | std::ios::trunc)
{
    if (!out_) throw error(errc::io, where_.string() + ": can't be written");
}

void trace_file::write()
{
    record_->write(out_);
    out_.close();
    if (!out_) throw error(errc::io, where_.string() + ": not all of the trace could be written");
}

} // namespace plait
