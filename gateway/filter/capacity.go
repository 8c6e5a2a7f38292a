package filter

import (
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

const (
	// keylessMemory limits the memory for request bodies of anonymous callers, in bytes. It holds 160 of the largest bodies.
	keylessMemory = 16 << 20
	// listsMemory limits the memory for translated lists and the responses built from them, in bytes, until the responses are sent: one
	// list of 20,000 pods, or 32 responses of 1,500.
	listsMemory = 80 << 20
)

// Capacity limits the concurrent work, the memory and the number of WebSockets of all exchanges of a gateway.
type Capacity struct {
	// Bodies limits request bodies, Keyless request bodies of callers without a credential, and Lists translated lists.
	Bodies, Keyless, Lists *Memory
	WebSockets             *semaphore.Weighted
	Gate                   *overload.Gate
}

// NewCapacity returns a Capacity for the given bytes of bodies and number of WebSockets.
func NewCapacity(bodies, webSockets int64, concurrency overload.Config) Capacity {
	return Capacity{
		NewMemory(bodies), NewMemory(keylessMemory), NewMemory(listsMemory), semaphore.NewWeighted(webSockets),
		overload.New(concurrency),
	}
}
