// Package overload limits the concurrent work of a gateway. Under too much load, the gateway still serves as many requests as it can, most
// important first.
//
// An admitted request holds a [Slot]. A slot is working while the gateway processes the request, and paused while the request waits for the
// platform or for the client. The limit of working slots depends on the number of processors; the latency of the platform does not affect
// it. The limit of all open slots depends on the memory. Admitted requests are never delayed again.
//
// A request without a free slot waits for a limited time in a queue of limited length. The next slot goes to organisations below their
// equal share; among those, to requests that reduce costs, then to reads, then to changes; and among equals, to the organisation with the
// smallest share. One tenth of the slots is reserved for requests that reduce costs, and another tenth for these and reads. One
// organisation cannot hold the last tenth of the open slots.
//
// Within one organisation and priority, the oldest request comes first until it has waited for half of the maximum time. Then the load is
// too high to serve all of them, and the newest comes first, because its client is the most likely to be still waiting. When the queue is
// full, the organisation with the most queued requests loses its oldest request of the lowest priority.
//
//	slot, ok := gate.TryAcquire(org, overload.Read)
//	if !ok {
//		slot, err = gate.Acquire(ctx, org, overload.Read)
//	}
//	defer slot.Release()
//
// A [Pool] limits other resources of the gateway, such as memory.
package overload
