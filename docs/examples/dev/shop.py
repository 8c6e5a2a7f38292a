"""A load-balanced API on CPUs."""

from runpod_flash import Endpoint

api = Endpoint(name="shop", cpu="cpu3c-2-4", workers=(0, 2))


@api.get("/prices/{item}")
async def price(item: str, pieces: int = 1) -> dict:
    """Price of some pieces of an item."""
    return {"item": item, "usd": 2 * pieces}


@api.post("/orders")
async def order(item: str, pieces: int) -> dict:
    """Order an item."""
    return {"ordered": {"item": item, "pieces": pieces}}
