// as: actors/asio/example.hpp
#pragma once

#include <asio/async_result.hpp>
