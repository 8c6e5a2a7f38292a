// Package fleet lists the gateways that share a store, and their versions.
package fleet
