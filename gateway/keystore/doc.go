// Package keystore keeps, in Redis, the records of the keys that were made at run
// time. It knows neither what a record says nor any secret: records are text with
// digests in it, by organisation and id.
//
// Everything of an organisation is in one slot of a Redis Cluster:
//
//	PREFIX{org}:all      hash: id to record
//	PREFIX{org}:version  changes with every record
//	PREFIX{org}:used     hash: id to when the key was last used, Unix seconds
package keystore
