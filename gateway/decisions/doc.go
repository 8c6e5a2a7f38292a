// Package decisions keeps what this gateway has decided: the decision log, the latest exchanges, and the archive.
package decisions
