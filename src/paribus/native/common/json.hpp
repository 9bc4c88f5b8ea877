// One JSON object per line, written key by key.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace paribus {

inline std::string json(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
            out += escaped;
        } else {
            out += c;
        }
    }
    return out + '"';
}
inline std::string json(const char* text) { return json(std::string(text)); }
inline std::string json(bool value) { return value ? "true" : "false"; }
inline std::string json(long value) { return std::to_string(value); }
inline std::string json(int value) { return std::to_string(value); }
// JSON has no NaN: what could not be measured is null.
inline std::string json(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.7g", value);
    return text;
}
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
    Object& raw(const char* key, const std::string& value) {
        text_ += text_.empty() ? "{" : ", ";
        text_ += json(key) + ": " + value;
        return *this;
    }
    std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

private:
    std::string text_;
};

}  // namespace paribus
