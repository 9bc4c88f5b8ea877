"""The OData documents of the emulated BMC: its services, and where its types are defined."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.bmc.emulator.resources import V1, Json


def odata(found: Mapping[str, Json]) -> Json:
    """Return the service document (DSP0266, 8.4.2)."""
    links = {key: one for key, one in found[V1].items() if isinstance(one, dict)}
    listed = {key: one["@odata.id"] for key, one in links.items() if "@odata.id" in one}
    listed = {"Service": V1 + "/"} | listed
    value = [{"name": name, "kind": "Singleton", "url": url} for name, url in listed.items()]
    return {"@odata.context": f"{V1}/$metadata", "value": value}


def metadata(found: Mapping[str, Json]) -> str:
    """Return the document that says where each type of resource is defined (DSP0266, 8.4.1)."""
    kinds = sorted({table["@odata.type"][1:].rpartition(".")[0] for table in found.values()})
    root = found[V1]["@odata.type"][1:].rpartition(".")[0]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        f"{''.join(map(_reference, kinds))}<edmx:DataServices>"
        '<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">'
        f'<EntityContainer Name="Service" Extends="{root}.ServiceContainer"/>'
        "</Schema></edmx:DataServices></edmx:Edmx>"
    )


def _reference(kind: str) -> str:
    name = kind.partition(".")[0]
    return (
        f'<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{name}_v1.xml">'
        f'<edmx:Include Namespace="{name}"/><edmx:Include Namespace="{kind}"/></edmx:Reference>'
    )
