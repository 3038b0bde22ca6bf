#pragma once

#include <plait/streams/trace.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace plait {

/// A trace that becomes a file in the end: for programs.
class trace_file {
public:
    /// Makes the file, so that a place where none can be is known at once; an empty path: nothing is recorded. Throws
    /// error(errc::io).
    explicit trace_file(std::filesystem::path where = {});

    /// Null where nothing is recorded.
    std::shared_ptr<trace> const& record() const noexcept { return record_; }

    /// Writes what is recorded; once, when nothing records any more. Throws error(errc::io).
    void write();

private:
    std::filesystem::path where_;
    std::ofstream out_;
    std::shared_ptr<trace> record_;
};

/// Takes `--trace FILE` out of a program's arguments, wherever it stands, and gives FILE; empty where there is none.
/// For programs that read their arguments by themselves.
std::string take_trace_option(int& count, char** arguments);

} // namespace plait
