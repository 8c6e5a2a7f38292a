"""Drives the price collector gpuhunt through the gateway, without a key.

Prints {"offers": [...]}, as the collector returns them.
"""

import dataclasses
import json
import os

from gpuhunt.providers import runpod

runpod.API_URL = os.environ["GATEWAY"] + "/graphql"
provider = runpod.RunpodProvider()
offers = provider.filter(provider.get())


def plain(offer):
    """An offer as JSON knows it."""
    fields = dataclasses.asdict(offer)
    vendor = fields.get("gpu_vendor")
    return {**fields, "gpu_vendor": getattr(vendor, "value", vendor)}


print(json.dumps({"offers": [plain(offer) for offer in offers]}))
