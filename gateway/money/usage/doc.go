// Package usage reads token counts from the responses of model servers: plain JSON, lines of
// JSON, and server-sent events, in the vocabularies of public servers. It reads a response as
// it passes, with a JSON decoder, in memory that does not depend on the response's size.
package usage
