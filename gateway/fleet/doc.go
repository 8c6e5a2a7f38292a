// Package fleet is which gateways share a store, and what they run.
package fleet
