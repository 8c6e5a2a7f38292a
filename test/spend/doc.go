// Package spend holds the proof of the ledger: gateways that share one Redis in front of the
// emulated platform, through faults of the network, of the store and of the platform, and through
// a month of its time. Afterwards, and at every sample on the way, the ledger must agree with the
// platform's resources and bills. There is no code here but tests.
//
// It takes more than a minute: a resource that is missing in a list is removed from the
// ledger a minute later, by the machine's clock, and most scenes of TestFaults wait for that.
package spend
