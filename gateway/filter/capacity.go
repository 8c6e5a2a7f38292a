package filter

import (
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

const (
	// keylessMemory limits the memory for request bodies of anonymous callers, in bytes. It holds 160 of the largest bodies.
	keylessMemory = 16 << 20
	// listsMemory limits the memory in bytes for translated lists and the responses built from them. It holds one list of 20,000 pods, or 32
	// responses with 1,500 pods each.
	listsMemory = 80 << 20
)

// Capacity limits the concurrent work, the memory and the number of WebSockets of all exchanges of a gateway.
type Capacity struct {
	// Bodies limits the memory for request bodies of the run interface, Keyless the memory for other request bodies of anonymous callers, and
	// Lists the memory for lists.
	Bodies, Keyless, Lists *Memory
	WebSockets             *semaphore.Weighted
	Gate                   *overload.Gate
}

// NewCapacity returns a Capacity. bodies is the limit for request bodies of the run interface in bytes, webSockets the maximum number of
// open WebSockets.
func NewCapacity(bodies, webSockets int64, concurrency overload.Config) Capacity {
	return Capacity{
		NewMemory(bodies), NewMemory(keylessMemory), NewMemory(listsMemory), semaphore.NewWeighted(webSockets),
		overload.New(concurrency),
	}
}
