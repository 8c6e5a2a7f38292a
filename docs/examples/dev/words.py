"""A queue function on a GPU."""

from runpod_flash import Endpoint, GpuGroup


@Endpoint(name="words", gpu=GpuGroup.ADA_24, workers=1, execution_timeout_ms=30000)
async def count(text: str, longest: int = 3) -> dict:
    """Count the words of a text."""
    from collections import Counter

    words = text.lower().split()
    return {"words": len(words), "common": Counter(words).most_common(longest)}
