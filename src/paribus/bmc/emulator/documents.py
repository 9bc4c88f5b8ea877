"""The OData documents of the emulated BMC: its services, and where its types are defined."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.bmc.emulator.resources import V1, Json


def odata(found: Mapping[str, Json]) -> Json:
    listed = {
        k: v["@odata.id"] for k, v in found[V1].items() if isinstance(v, dict) and "@odata.id" in v
    }
    listed = {"Service": V1 + "/"} | listed
    value = [{"name": name, "kind": "Singleton", "url": url} for name, url in listed.items()]
    return {"@odata.context": f"{V1}/$metadata", "value": value}


def metadata(found: Mapping[str, Json]) -> str:
    """Return the OData document that says where each type of resource is defined."""
    kinds = sorted({table["@odata.type"][1:].rpartition(".")[0] for table in found.values()})
    refs = "".join(
        f'<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{k.partition(".")[0]}_v1.xml">'
        f'<edmx:Include Namespace="{k.partition(".")[0]}"/><edmx:Include Namespace="{k}"/></edmx:Reference>'
        for k in kinds
    )
    root = found[V1]["@odata.type"][1:].rpartition(".")[0]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        f"{refs}<edmx:DataServices>"
        '<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">'
        f'<EntityContainer Name="Service" Extends="{root}.ServiceContainer"/>'
        "</Schema></edmx:DataServices></edmx:Edmx>"
    )
