package filter

import "golang.org/x/sync/semaphore"

const (
	// keylessMemory bounds the bodies in flight of callers without a key, in bytes: 160 of the largest.
	keylessMemory = 16 << 20
	// listsMemory bounds the memory of lists that are translated at once, and of the answers made of them until the answers are sent, in
	// bytes: one list of 20,000 pods, or 32 answers of 1,500.
	listsMemory = 80 << 20
)

// Capacity bounds the memory and the WebSockets of all exchanges of a gateway.
type Capacity struct {
	// Bodies is the memory of bodies, Keyless of the bodies of callers without a key, and Lists of lists that are translated.
	Bodies, Keyless, Lists *Memory
	WebSockets             *semaphore.Weighted
}

// NewCapacity returns room for so many bytes of bodies and so many WebSockets.
func NewCapacity(bodies, webSockets int64) Capacity {
	return Capacity{NewMemory(bodies), NewMemory(keylessMemory), NewMemory(listsMemory), semaphore.NewWeighted(webSockets)}
}
