// Package cas keeps records in Redis that are changed by compare and swap only:
// of many writers that replace the value that they have read, one succeeds.
//
// A [Store] keeps records of one type, as JSON, each for some time. They may be in
// indexes, which can bound how many there are. All records of an organisation are in
// one slot of a Redis Cluster, and times are measured by the store's clock.
package cas
