// Package platform emulates the GPU cloud platform that tollgate stands in
// front of, so that the gateway, its users and their tests can be exercised
// without renting anything.
//
// It is a whole stand-in, not a set of canned answers: resources are created,
// provisioned, billed and torn down; stock and balance run out; rules are
// checked and refusals carry the platform's own problem documents. It shares
// no type, schema or line of code with the gateway, on purpose: two programs
// that were wrong in the same place would still agree with each other.
//
// # Time
//
// Nothing runs in the background. The state of every resource is a function of
// what was asked of it and of the emulator's [Clock], worked out when it is
// asked for. A clock may follow real time, run fast, or stand still until
// [Clock.Advance] is called.
//
// Functions that an emulator with a [Worker] runs are the exception: they take real
// time, and a job is over when its function is.
//
// # Use
//
//	func TestSomething(t *testing.T) {
//		p := platform.RunT(t)
//		// p.URL is the base address, platform.DefaultKey a key it knows.
//		p.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultCapacity, Times: 1})
//		...
//		for _, call := range p.Calls() { ... }
//	}
//
// # Adding a resource
//
// A resource is a file: its record, the structs of its request bodies, its handlers (methods on
// exchange), and the rows of its operations, which restRoutes joins. What needs the
// state's lock says so in its name (...Locked).
package platform
