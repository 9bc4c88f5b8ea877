#include "json.hpp"

#include <cmath>
#include <cstdio>

namespace paribus {

std::string json(const std::string& text) {
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

std::string json(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.7g", value);
    return text;
}

Object& Object::raw(const char* key, const std::string& value) {
    text_ += text_.empty() ? "{" : ", ";
    text_ += json(key) + ": " + value;
    return *this;
}

}  // namespace paribus
