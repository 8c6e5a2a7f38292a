// Package revisions keeps the configurations that were in force at any gateway of a store, without secrets, and compares them with the one in
// force and with the file.
package revisions
