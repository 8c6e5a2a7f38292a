// Package overload bounds the concurrent work of a gateway, so that under more load
// than it can bear it answers as many requests as before, and the right ones.
//
// A request that is admitted has a [Slot]. It is working while the gateway has
// something to do for it, and rests while it waits for the platform or for its
// caller: the bound of those working follows from the processors, whatever the
// latency of the platform, and that of all slots from the memory. Work that was
// admitted is never held up again.
//
// A request that finds no room waits, for a bounded time and in a queue of bounded
// length. The next slot goes to an organisation that does not have its part yet;
// among those to what lowers cost, then to reads, then to all else; among equals to
// the organisation that has least. Whatever lowers cost finds a tenth of the slots free of all else, and reads a
// tenth free of changes.
//
// Within one organisation and priority the oldest is first, until it has waited for
// half of its longest time: then more comes than can be served, and the newest is first,
// whose caller is still there. When the queue is full, the organisation that has
// most in it loses its oldest request of the least priority.
//
//	slot, ok := gate.Try(org, overload.Read)
//	if !ok {
//		slot, err = gate.Wait(ctx, org, overload.Read)
//	}
//	defer slot.Leave()
package overload
