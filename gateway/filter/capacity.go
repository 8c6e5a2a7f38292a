package filter

import (
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

const (
	// keylessMemory limits the memory for request bodies of anonymous callers, in bytes. Three quarters of it hold 120 of the largest bodies.
	keylessMemory = 16 << 20
	// listsMemory limits the memory in bytes for translated lists and the responses built from them. A list of 16,000 pods or more takes all
	// that one organisation can hold. A response with 1,500 pods takes a thirty-second of the limit.
	listsMemory = 80 << 20
)

// Capacity limits the concurrent work, the memory and the number of WebSockets of all exchanges of a gateway.
type Capacity struct {
	// Bodies limits the memory for request bodies of the run interface, Keyless the memory for other request bodies of anonymous callers, and
	// Lists the memory for lists. WebSockets limits the number of open WebSockets.
	Bodies, Keyless, Lists, WebSockets *overload.Pool
	Gate                               *overload.Gate
}

// NewCapacity returns a Capacity. bodies is the limit for request bodies of the run interface in bytes, webSockets the maximum number of
// open WebSockets.
func NewCapacity(bodies, webSockets int64, concurrency overload.Config) Capacity {
	return Capacity{
		overload.NewPool(bodies, operation.MaxRead+1), overload.NewPool(keylessMemory, maxBody+1), overload.NewPool(listsMemory, 1),
		overload.NewPool(webSockets, 1), overload.New(concurrency),
	}
}
