#include "mapped.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "json.hpp"

namespace paribus {

namespace {

// The GNU build-id of a mapped object, in hex; "" where it has none.
std::string build_id(const dl_phdr_info& object) {
    std::string id;
    for (int i = 0; i < object.dlpi_phnum && id.empty(); ++i) {
        const auto& header = object.dlpi_phdr[i];
        if (header.p_type != PT_NOTE) continue;
        const auto* at = reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
        const auto* end = at + header.p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end && id.empty()) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const auto* name = at + sizeof note;
            const auto* text = name + ((note.n_namesz + 3u) & ~3u);
            if (note.n_type == 3 && note.n_namesz == 4 && !std::memcmp(name, "GNU", 4)) {
                char hex[3];
                for (unsigned b = 0; b < note.n_descsz; ++b) {
                    std::snprintf(hex, sizeof hex, "%02x", text[b]);
                    id += hex;
                }
            }
            at = text + ((note.n_descsz + 3u) & ~3u);
        }
    }
    return id;
}

// The checksum of POSIX' cksum (polynomial 0x04C11DB7, the length behind the data, complement).
class Checksum {
public:
    void add(unsigned char byte) {
        sum_ = (sum_ << 8) ^ of(static_cast<unsigned char>(sum_ >> 24) ^ byte);
    }
    std::uint32_t after(std::uint64_t length) {
        for (; length != 0; length >>= 8) add(static_cast<unsigned char>(length & 0xff));
        return ~sum_;
    }

private:
    static std::uint32_t of(unsigned index) {
        static const auto table = [] {
            std::array<std::uint32_t, 256> rows{};
            for (std::uint32_t row = 0; row < 256; ++row) {
                std::uint32_t value = row << 24;
                for (int bit = 0; bit < 8; ++bit)
                    value = (value & 0x80000000u) != 0 ? (value << 1) ^ 0x04C11DB7u : value << 1;
                rows[row] = value;
            }
            return rows;
        }();
        return table[index & 0xff];
    }
    std::uint32_t sum_ = 0;
};

// Size and checksum of the first and the last 256 KiB of a file, as facts.sh has them: what differs
// between two builds moves the tables that are there. "" for a file that cannot be read.
std::string digest_of(const std::string& path) {
    constexpr long part = 262144;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return "";
    std::string digest;
    if (std::fseek(file, 0, SEEK_END) == 0) {
        const long size = std::ftell(file), length = std::min(size, part);
        std::string bytes(static_cast<std::size_t>(std::max(length, 0L)), '\0');
        Checksum sum;
        bool whole = size > 0;
        for (const long from : {0L, size - length}) {
            whole = whole && std::fseek(file, from, SEEK_SET) == 0 &&
                    std::fread(&bytes[0], 1, bytes.size(), file) == bytes.size();
            for (const char byte : bytes) sum.add(static_cast<unsigned char>(byte));
        }
        if (whole)
            digest = std::to_string(size) + "-" +
                     std::to_string(sum.after(2 * static_cast<std::uint64_t>(length)));
    }
    std::fclose(file);
    return digest;
}

// What tells a mapped object from another version of it: its build-id; "digest:" and that of its
// file where it has none; "text:" and a hash of its code where the file is gone. 64 bytes of every
// page do: a change moves all code behind it.
std::string identity_of(const dl_phdr_info& object) {
    std::string id = build_id(object);
    if (!id.empty()) return id;
    static std::map<std::string, std::string> known;  // objects are asked for twice
    const std::string path = object.dlpi_name[0] == '\0' ? "/proc/self/exe" : object.dlpi_name;
    const auto found = known.find(path);
    id = found != known.end() ? found->second : known[path] = digest_of(path);
    if (!id.empty()) return "digest:" + id;
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const auto& header = object.dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0 ||
            (header.p_flags & PF_R) == 0)
            continue;
        const auto* at = reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
        for (std::size_t n = 0; n < header.p_filesz; n = n % 4096 == 63 ? n + 4033 : n + 1)
            hash = (hash ^ at[n]) * 1099511628211u;
        hash = (hash ^ header.p_filesz) * 1099511628211u;
    }
    char text[24];
    std::snprintf(text, sizeof text, "text:%016llx", static_cast<unsigned long long>(hash));
    return text;
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The function `symbol` of the mapped object whose file name begins with `name`; plugins are not
// in the global scope. Null where there is none.
template <class Function>
Function function_of(const Mapped& objects, const char* name, const char* symbol) {
    for (const auto& [path, id] : objects) {
        if (file_name(path).rfind(name, 0) != 0) continue;
        void* object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (object == nullptr) continue;
        auto found = reinterpret_cast<Function>(dlsym(object, symbol));
        dlclose(object);  // it stays mapped: NOLOAD only counted it once more
        if (found != nullptr) return found;
    }
    return nullptr;
}

}  // namespace

std::string build_id_of(const char* symbol) {
    struct Search {
        const void* base;
        std::string id;
    } search{nullptr, ""};
    Dl_info info;
    void* address = dlsym(RTLD_DEFAULT, symbol);
    if (address == nullptr || dladdr(address, &info) == 0) return "";
    search.base = info.dli_fbase;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* data) {
            auto& wanted = *static_cast<Search*>(data);
            if (reinterpret_cast<const void*>(object->dlpi_addr) != wanted.base) return 0;
            wanted.id = build_id(*object);
            return 1;
        },
        &search);
    return search.id;
}

Mapped mapped_objects() {
    Mapped found;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* data) {
            const std::string path = object->dlpi_name;
            if (path.rfind("linux-vdso", 0) != 0)
                static_cast<Mapped*>(data)->emplace(path.empty() ? "program" : path,
                                                    identity_of(*object));
            return 0;
        },
        &found);
    return found;
}

std::string text_of(const Mapped& objects, const Mapped& but) {
    Object out;
    for (const auto& [path, id] : objects)
        if (but.count(path) == 0) out.add(file_name(path).c_str(), id);
    return out.text();
}

std::string hash_of(const Mapped& objects) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const auto& [path, id] : objects)
        for (const char c : file_name(path) + " " + id + "\n")
            hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char text[16];
    std::snprintf(text, sizeof text, "%012llx", static_cast<unsigned long long>(hash >> 16));
    return text;
}

std::string ucx_version(const Mapped& objects) {
    const auto ask = function_of<const char* (*)()>(objects, "libucp", "ucp_get_version_string");
    return ask == nullptr ? "" : ask();
}

std::string libfabric_version(const Mapped& objects) {
    const auto ask = function_of<std::uint32_t (*)()>(objects, "libfabric", "fi_version");
    if (ask == nullptr) return "";
    return std::to_string(ask() >> 16) + "." + std::to_string(ask() & 0xffff);
}

std::string blas_core(const Mapped& objects) {
    for (const char* library : {"libopenblas", "libblas", "libcblas", "liblapack"}) {
        const auto ask = function_of<char* (*)()>(objects, library, "openblas_get_corename");
        if (ask != nullptr) return ask();
    }
    return "";
}

}  // namespace paribus
