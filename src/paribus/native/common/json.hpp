// One JSON object per line, written key by key.
#pragma once

#include <string>
#include <vector>

namespace paribus {

std::string json(const std::string& text);
inline std::string json(const char* text) { return json(std::string(text)); }
inline std::string json(bool value) { return value ? "true" : "false"; }
inline std::string json(long value) { return std::to_string(value); }
inline std::string json(int value) { return std::to_string(value); }
// JSON has no NaN: what could not be measured is null.
std::string json(double value);
template <class T>
std::string json(const std::vector<T>& values) {
    std::string out = "[";
    for (const auto& value : values) {
        if (out.size() > 1) out += ", ";
        out += json(value);
    }
    return out + ']';
}

class Object {
public:
    template <class T>
    Object& add(const char* key, const T& value) {
        return raw(key, json(value));
    }
    Object& raw(const char* key, const std::string& value);
    std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

private:
    std::string text_;
};

}  // namespace paribus
