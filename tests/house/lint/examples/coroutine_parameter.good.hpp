// as: engine/example.hpp
#pragma once

namespace plait {

task<int> count(std::string text);
task<> print(std::shared_ptr<std::string const> text, std::function<void(int const&)> each);
generator<int> numbers(std::vector<int> values);
task<engine> open(runtime& home, options o, int const limit, std::vector<int const*> keys = {});

/// Not a coroutine: it copies what it is given and makes the task from that.
inline task<int> length(std::string const& text)
{
    return count(std::string(text));
}

/// No task.
int size(std::string const& text);
void run(task<int>&& t, result<int>& out);

namespace detail {
task<int> walk(tree& t);
}

class store {
public:
    task<std::optional<int>> find(key k) const;
    void wait(task<int> const& t);

private:
    task<> flush(buffer& b);
    task<int>* current_ = nullptr;
};

} // namespace plait
