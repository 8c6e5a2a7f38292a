// Package groupcommit sends the scripts that wait for Redis at the same instant in one
// write, and reads their replies in one read: group commit for stores whose scripts
// are independent of each other. A lone script waits for no other one.
package groupcommit
