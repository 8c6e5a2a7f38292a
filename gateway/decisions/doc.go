// Package decisions keeps this gateway's decisions: the decision log, the latest exchanges, and the archive.
package decisions
