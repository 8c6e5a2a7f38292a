// Package cas keeps records in Redis that are changed by compare and swap only:
// of many that replace what they have seen, one does.
//
// A [Store] keeps records of one type, as JSON, each for some time. They may be in
// indexes, which can bound how many there are. All records of an organisation are in
// one slot of a Redis Cluster, and the store's clock is what times are measured by.
package cas
