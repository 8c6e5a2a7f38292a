// Package published holds request bodies against the platform's published
// description: the schemas of its request bodies without prose, and the deltas of
// overlay.json, which are what the platform is known to take besides. It shares
// nothing with the gateway's own description, which is wider.
package published
