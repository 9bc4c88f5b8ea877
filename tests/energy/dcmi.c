/* DCMI's Get Power Reading (DCMI 1.5, 6.6.1) for OpenIPMI's ipmi_sim: a module of its lan.conf.

   The file that the module's options name holds: watts now, least, most, on average, the period in
   milliseconds, and whether averages over other periods (mode 2) are known. The declarations are
   of OpenIPMI/serv.h and mcserv.h. */
#include <stdint.h>
#include <stdio.h>

typedef struct sys_data_s sys_data_t;
typedef struct lmc_data_s lmc_data_t;

typedef struct msg_s {
    void* src_addr;
    int src_len;
    long oem_data;
    unsigned char channel;
    void* orig_channel;
    unsigned char authtype;
    uint32_t seq, sid;
    union {
        struct {
            unsigned char* authcode;
            unsigned char authcode_data[16];
        } rmcp;
        struct {
            unsigned char payload, encrypted, authenticated, iana[3];
            uint16_t payload_id;
            unsigned char* authdata;
            unsigned int authdata_len;
        } rmcpp;
    };
    unsigned char netfn, rs_addr, rs_lun, rq_addr, rq_lun, rq_seq, cmd;
    unsigned char* data;
    unsigned int len;
} msg_t;

typedef void (*handler_t)(lmc_data_t*, msg_t*, unsigned char*, unsigned int*, void*);
extern void ipmi_emu_register_group_extension_handler(uint8_t, handler_t, void*);

static char file[4096];

static unsigned char* put(unsigned char* to, unsigned value, int bytes) {
    for (; bytes; bytes--, value >>= 8) *to++ = value & 255;
    return to;
}

static void answer(lmc_data_t* mc, msg_t* msg, unsigned char* said, unsigned int* len, void* own) {
    unsigned now, least, most, mean, period, enhanced;
    FILE* in = fopen(file, "r");
    int known =
        in && fscanf(in, "%u %u %u %u %u %u", &now, &least, &most, &mean, &period, &enhanced) == 6;
    (void)mc, (void)own;
    if (in) fclose(in);
    *len = 1;
    if (msg->cmd != 2 || !known) {
        said[0] = 0xc1; /* invalid command */
        return;
    }
    if (msg->data[1] == 2 && !enhanced) {
        said[0] = 0xcc; /* invalid data field */
        return;
    }
    unsigned char* to = said;
    to = put(to, 0, 1);
    to = put(to, 0xdc, 1);
    to = put(to, now, 2);
    to = put(to, least, 2);
    to = put(to, most, 2);
    to = put(to, mean, 2);
    to = put(to, 0, 4);
    to = put(to, period, 4);
    to = put(to, 0x40, 1);
    *len = to - said;
}

int ipmi_sim_module_print_version(sys_data_t* sys, char* options) {
    (void)sys, (void)options;
    return 0;
}

int ipmi_sim_module_init(sys_data_t* sys, char* options) {
    (void)sys;
    snprintf(file, sizeof file, "%s", options);
    ipmi_emu_register_group_extension_handler(0xdc, answer, NULL);
    return 0;
}
