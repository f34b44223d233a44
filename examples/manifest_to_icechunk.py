"""Stores the references of a manifest (h5bridge manifest my.ms my.json) in Icechunk, through VirtualiZarr.

Needs icechunk and virtualizarr; versions 1.1 and 2.5 were tried.
"""
import json, os
from datetime import datetime, timezone
import icechunk, virtualizarr, xarray
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from h5bridge.virtualizarr import Parser

manifest = os.path.abspath("my.json")
with open(manifest) as f:
    files = [file["path"] for file in json.load(f)["h5bridge"]["files"]]
places = sorted({"file://%s/" % os.path.dirname(file) for file in files})
config = icechunk.RepositoryConfig.default()
for place in places:
    store = icechunk.local_filesystem_store(place.removeprefix("file://"))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(place, store))
repository = icechunk.Repository.create(icechunk.local_filesystem_storage("my.icechunk"), config,
                                        authorize_virtual_chunk_access=dict.fromkeys(places))
session = repository.writable_session("main")
registry = ObjectStoreRegistry({"file://": LocalStore()})
tree = virtualizarr.open_virtual_datatree(manifest, registry=registry, parser=Parser(table=None))
tree.vz.to_icechunk(session.store, last_updated_at=datetime.now(timezone.utc))
session.commit("h5bridge manifest")
xarray.open_zarr(repository.readonly_session("main").store, group="MAIN", consolidated=False)
