// Package hostile plays a stranger who means harm: raw bytes on sockets against
// a gateway that serves as it does in production, in front of a platform that
// keeps every byte it receives, and a platform that answers with malice.
//
// The tests hold the gateway to one promise above all: a refused call costs the platform
// nothing, not a connection and not a byte.
package hostile
