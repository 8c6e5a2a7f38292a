// Package keystore keeps the records of the keys that were made at run time, and when
// they were last used, in Redis. It knows neither the content of a record nor any secret:
// records are JSON with digests in it, by organisation and id.
package keystore
