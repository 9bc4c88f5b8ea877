"""Maker, model, board and firmware of a machine. Serial numbers are not read at all."""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import read_all, scalar

_DMI = "/sys/class/dmi/id/"
_FILES = {
    "machine.vendor": _DMI + "sys_vendor",
    "machine.product": _DMI + "product_name",
    "machine.version": _DMI + "product_version",
    "machine.family": _DMI + "product_family",
    "machine.sku": _DMI + "product_sku",
    "machine.board_vendor": _DMI + "board_vendor",
    "machine.board": _DMI + "board_name",
    "machine.board_version": _DMI + "board_version",
    "machine.chassis": _DMI + "chassis_type",
    "machine.bios_vendor": _DMI + "bios_vendor",
    "machine.bios_version": _DMI + "bios_version",
    "machine.bios_date": _DMI + "bios_date",
    "machine.bios_release": _DMI + "bios_release",
    "machine.ec_release": _DMI + "ec_firmware_release",
}
# Where firmware describes the machine by a device tree (ARM, POWER) there is no DMI.
_TREE = "/sys/firmware/devicetree/base/model"


def dmi_facts(archive: Archive) -> dict[str, Any]:
    """Return maker, model, board and firmware."""
    facts = read_all(archive, _FILES)
    if isinstance(facts["machine.product"], Unknown):
        model = archive.read(_TREE)
        if not isinstance(model, Unknown):
            facts["machine.product"] = scalar(model.replace("\0", " "))
    return facts
