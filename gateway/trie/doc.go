// Package trie has a map that never changes: a map with one entry more shares all but a few nodes with the map before it, so that many
// readers keep their map while a writer makes the next one, at a cost that does not grow with the map.
package trie
