// Package groupcommit sends the scripts, reads of keys and pipelines that wait for Redis at
// the same instant in one write, and reads their replies in one read: group commit for stores
// whose commands are independent of each other. A lone one waits for no other.
package groupcommit
