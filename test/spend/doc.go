// Package spend holds the proof of the ledger: gateways that share one Redis in front
// of the emulated platform, through faults of the network, of the store and of the
// platform, and through a month of its time. Afterwards, and at every sample on the
// way, the ledger must agree with what the platform has and bills. There is no code
// here but tests.
package spend
