"""What Redfish shows of the emulated server: every resource by its path.

The parts of the table are written by `put(path, kind, name, **more)`, which adds a resource, and
`collect(path, kind, members)`, which adds a collection (`resources`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from paribus.bmc.emulator.accounts import LONGEST, ROLES, SHORTEST, Accounts
from paribus.bmc.emulator.hardware import ATTRIBUTE, GPUS, HOSTS, SHAPES, Hardware, uuid_of

Json = dict[str, Any]
V1 = "/redfish/v1"
SYSTEM = f"{V1}/Systems/1"
FABRIC = f"{V1}/Fabrics/PCIe"
ZONES = f"{FABRIC}/Zones"
ENDPOINTS = f"{FABRIC}/Endpoints"
BIOS = f"{SYSTEM}/Bios"
TASKS = f"{V1}/TaskService/Tasks"
SESSIONS = f"{V1}/SessionService/Sessions"
ACCOUNTS = f"{V1}/AccountService/Accounts"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
OEM = f"{FABRIC}/Actions/Oem/Emulated.SetTopology"
UUID = "5a1b0000-0000-4000-8000-000000000008"
SERIAL = "EMULATED-8GPU"
_MAKE = {"Manufacturer": "Emulated", "Model": "8-GPU server"}


def link(path: str) -> Json:
    """Return a reference to a resource."""
    return {"@odata.id": path}


def resources(
    hardware: Hardware, accounts: Accounts, dialect: str, skew_s: float
) -> dict[str, Json]:
    """Return all resources by their paths, without tasks. `skew_s`: seconds its clock is ahead."""
    found: dict[str, Json] = {}

    def put(path: str, kind: str, name: str, **more: Any) -> None:
        base = kind.partition(".")[0]
        found[path] = {
            "@odata.id": path,
            "@odata.type": f"#{kind}.{base}",
            "Id": path.rsplit("/", 1)[-1],
            "Name": name,
            **more,
        }

    def collect(path: str, kind: str, members: Iterable[str]) -> None:
        paths = [link(f"{path}/{name}") for name in members]
        found[path] = {
            "@odata.id": path,
            "@odata.type": f"#{kind}Collection.{kind}Collection",
            "Name": f"{kind} collection",
            "Members": paths,
            "Members@odata.count": len(paths),
        }

    _services(put, skew_s)
    _users(put, collect, accounts)
    _machine(put, collect, hardware, dialect)
    _chassis(put, collect)
    _fabric(put, collect, hardware, dialect)
    return found


def _services(put: Any, skew_s: float) -> None:
    """Put the root and the services of sessions, accounts and tasks."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + skew_s))
    names = ["AccountService", "Chassis", "Fabrics", "Managers", "SessionService", "Systems"]
    put(
        V1,
        "ServiceRoot.v1_16_0",
        "Emulated BMC of an 8-GPU server",
        **{name: link(f"{V1}/{name}") for name in names},
        Tasks=link(f"{V1}/TaskService"),
        Links={"Sessions": link(SESSIONS)},
        Product="Paribus emulator",
        RedfishVersion="1.17.0",
        UUID=UUID,
        ProtocolFeaturesSupported=dict.fromkeys(
            ("ExcerptQuery", "FilterQuery", "SelectQuery"), False
        ),
    )
    put(
        f"{V1}/SessionService",
        "SessionService.v1_1_9",
        "Sessions",
        Sessions=link(SESSIONS),
        ServiceEnabled=True,
        SessionTimeout=600,
    )
    put(
        f"{V1}/AccountService",
        "AccountService.v1_15_0",
        "Accounts",
        Accounts=link(ACCOUNTS),
        Roles=link(f"{V1}/AccountService/Roles"),
        MinPasswordLength=SHORTEST,
        MaxPasswordLength=LONGEST,
        ServiceEnabled=True,
    )
    put(
        f"{V1}/TaskService",
        "TaskService.v1_2_1",
        "Tasks",
        DateTime=now,
        ServiceEnabled=True,
        Tasks=link(TASKS),
    )


def _users(put: Any, collect: Any, accounts: Accounts) -> None:
    """Put sessions, accounts and roles."""
    collect(SESSIONS, "Session", accounts.sessions)
    for key, (_, owner) in accounts.sessions.items():
        name = accounts.users[owner].name
        put(f"{SESSIONS}/{key}", "Session.v1_7_0", "A session", UserName=name, Password=None)
    collect(ACCOUNTS, "ManagerAccount", accounts.users)
    for key, user in accounts.users.items():
        role = f"{V1}/AccountService/Roles/{user.role}"
        put(
            f"{ACCOUNTS}/{key}",
            "ManagerAccount.v1_12_0",
            "An account",
            UserName=user.name,
            Password=None,
            RoleId=user.role,
            Enabled=user.enabled,
            Locked=False,
            AccountTypes=["Redfish"],
            PasswordChangeRequired=False,
            Links={"Role": link(role)},
        )
    collect(f"{V1}/AccountService/Roles", "Role", ROLES)
    for role, privileges in ROLES.items():
        put(
            f"{V1}/AccountService/Roles/{role}",
            "Role.v1_3_1",
            role,
            RoleId=role,
            IsPredefined=True,
            AssignedPrivileges=privileges,
        )


def _machine(put: Any, collect: Any, hardware: Hardware, dialect: str) -> None:
    """Put the server, in the dialect "bios" with its settings."""
    collect(f"{V1}/Systems", "ComputerSystem", ["1"])
    bios = {"Bios": link(BIOS)} if dialect == "bios" else {}
    put(
        SYSTEM,
        "ComputerSystem.v1_22_0",
        "The server",
        **_MAKE,
        **bios,
        SystemType="Physical",
        UUID=UUID,
        SerialNumber=SERIAL,
        PowerState=hardware.power,
        Status={"State": "Enabled", "Health": "OK"},
        Links={"Chassis": [link(f"{V1}/Chassis/1")], "ManagedBy": [link(f"{V1}/Managers/1")]},
        Actions={
            "#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown"],
            }
        },
    )
    if bios:
        put(
            BIOS,
            "Bios.v1_2_1",
            "BIOS settings in effect",
            Attributes={ATTRIBUTE: hardware.shape},
            **{
                "@Redfish.Settings": {
                    "@odata.type": "#Settings.v1_4_0.Settings",
                    "SettingsObject": link(f"{BIOS}/Settings"),
                    "SupportedApplyTimes": ["OnReset"],
                }
            },
        )
        pending = {ATTRIBUTE: hardware.shape} | hardware.settings
        put(f"{BIOS}/Settings", "Bios.v1_2_1", "BIOS settings of the next boot", Attributes=pending)


def _chassis(put: Any, collect: Any) -> None:
    """Put the case with its GPUs, and the BMC."""
    collect(f"{V1}/Chassis", "Chassis", ["1"])
    put(
        f"{V1}/Chassis/1",
        "Chassis.v1_25_0",
        "The case",
        **_MAKE,
        ChassisType="RackMount",
        SerialNumber=SERIAL,
        PCIeDevices=link(f"{V1}/Chassis/1/PCIeDevices"),
        Links={"ComputerSystems": [link(SYSTEM)], "ManagedBy": [link(f"{V1}/Managers/1")]},
    )
    collect(f"{V1}/Chassis/1/PCIeDevices", "PCIeDevice", GPUS)
    for number, gpu in enumerate(GPUS):
        put(
            f"{V1}/Chassis/1/PCIeDevices/{gpu}",
            "PCIeDevice.v1_15_0",
            gpu,
            DeviceType="SingleFunction",
            SerialNumber=uuid_of(number),
            PCIeInterface={"PCIeType": "Gen3", "LanesInUse": 16, "MaxLanes": 16},
        )
    collect(f"{V1}/Managers", "Manager", ["1"])
    put(
        f"{V1}/Managers/1",
        "Manager.v1_19_1",
        "The BMC",
        **_MAKE,
        ManagerType="BMC",
        FirmwareVersion="1.0",
        ServiceEntryPointUUID=UUID,
        Links={"ManagerForServers": [link(SYSTEM)]},
    )


def _fabric(put: Any, collect: Any, hardware: Hardware, dialect: str) -> None:
    """Put the PCIe fabric: its switches, endpoints and zones."""
    collect(f"{V1}/Fabrics", "Fabric", ["PCIe"])
    oem = {"Emulated": {"Topology": _shape(hardware.zones)}}
    actions = {"Oem": {"#Emulated.SetTopology": {"target": OEM}}}
    put(
        FABRIC,
        "Fabric.v1_3_2",
        "PCIe between processors and GPUs",
        FabricType="PCIe",
        **{name: link(f"{FABRIC}/{name}") for name in ("Endpoints", "Switches", "Zones")},
        **({"Oem": oem, "Actions": actions} if dialect == "oem" else {}),
    )
    collect(f"{FABRIC}/Switches", "Switch", ["0", "1"])
    for number in "01":
        put(f"{FABRIC}/Switches/{number}", "Switch.v1_9_3", f"Switch {number}", SwitchType="PCIe")
    collect(ENDPOINTS, "Endpoint", [*HOSTS, *GPUS])
    for name in HOSTS:
        at = {"EntityType": "RootComplex", "EntityLink": link(SYSTEM)}
        put(f"{ENDPOINTS}/{name}", "Endpoint.v1_8_2", name, ConnectedEntities=[at])
    for name in GPUS:
        at = {"EntityType": "PCIeDevice", "EntityLink": link(f"{V1}/Chassis/1/PCIeDevices/{name}")}
        put(f"{ENDPOINTS}/{name}", "Endpoint.v1_8_2", name, ConnectedEntities=[at])
    collect(ZONES, "Zone", hardware.zones)
    for zone, ends in hardware.zones.items():
        base = f"{ZONES}/{zone}/Actions/Zone."
        both = {f"#Zone.{a}": {"target": base + a} for a in ("AddEndpoint", "RemoveEndpoint")}
        put(
            f"{ZONES}/{zone}",
            "Zone.v1_6_3",
            f"What port {zone} of the processors reaches",
            ZoneType="ZoneOfEndpoints",
            Status={"State": "Enabled", "Health": "OK"},
            Links={
                "Endpoints": [link(f"{ENDPOINTS}/{end}") for end in ends],
                "Endpoints@odata.count": len(ends),
            },
            **({"Actions": both} if dialect == "actions" else {}),
        )


def _shape(zones: Mapping[str, list[str]]) -> str:
    """Return the shape that the zones make, "Mixed" for none that has a name."""
    for shape, host in SHAPES.items():
        if set(GPUS[4:]) <= set(zones[host]):
            return shape
    return "Mixed"
